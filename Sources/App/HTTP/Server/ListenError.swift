/// Why the server could not start, in a line for whoever started it.
struct ListenError: Error, CustomStringConvertible {
  let description: String
}
