/// The reason why the server cannot listen, as one line for the operator.
struct ListenError: Error, CustomStringConvertible {
  let description: String
}
