/// The input of the user at a question, or of a script on stdin.
enum UserInput {
  /// - Parameter name: the missing value, if there is neither a terminal nor a line on stdin.
  static func line(_ question: String, missing name: String) throws -> String {
    if Prompt.isPossible { return try Prompt.line(question) }
    guard let line = readLine(), !line.isEmpty else { throw Failure.usage("The \(name) is missing.") }
    return line
  }

  static func password(fromStdin: Bool) throws -> String {
    if fromStdin { return try passwordLine() }
    guard Prompt.isPossible else { throw Failure.usage("There is no terminal to ask for the password. \(advice)") }
    return try Prompt.secret("Password: ")
  }

  /// Asks twice, because the input is not shown.
  static func newPassword(fromStdin: Bool) throws -> String {
    let password = try password(fromStdin: fromStdin)
    if !fromStdin, try Prompt.secret("Again: ") != password {
      throw Failure.usage("The two passwords differ.")
    }
    return password
  }

  private static func passwordLine() throws -> String {
    guard let line = readLine(), !line.isEmpty else { throw Failure.usage("There is no password on stdin.") }
    return line
  }

  private static let advice = "Use --password-stdin and send the password to stdin."
}
