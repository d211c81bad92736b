/// An error of the program itself, shown as one line.
struct Failure: Error, CustomStringConvertible {
  let status: ProgramExit
  let description: String

  static func refused(_ description: String) -> Failure { Failure(status: .refused, description: description) }

  static func usage(_ description: String) -> Failure { Failure(status: .usage, description: description) }

  static let interrupted = Failure(status: .interrupted, description: "interrupted")
}
