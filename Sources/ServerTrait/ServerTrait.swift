#if !Server
  #error("Run `swift build --traits Server`. A package that depends on this one adds `traits: [\"Server\"]`.")
#endif
