#if !Server
  #error("Run `swift build --traits Server`. Without this trait, the package is the library MusterKit alone.")
#endif
