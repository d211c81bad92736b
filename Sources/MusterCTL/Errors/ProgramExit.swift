/// The program's exit statuses, for scripts. `musterctl --help` and docs/musterctl.md list the same.
enum ProgramExit: Int32, CaseIterable {
  case success = 0
  /// The service refused, or there is no such user or event.
  case refused = 1
  /// An unknown command or option, or a value that cannot be read.
  case usage = 2
  case notLoggedIn = 3
  /// No response, an unexpected one, or a problem of the service. A write may have happened.
  case unavailable = 4
  /// Ctrl-C at a question.
  case interrupted = 130

  /// The `type` of an error that is not a refusal of the service.
  var slug: String {
    switch self {
    case .success, .refused: "refused"
    case .usage: "usage"
    case .notLoggedIn: "not-logged-in"
    case .unavailable: "unavailable"
    case .interrupted: "interrupted"
    }
  }

  static let listing = """
      0  success
      1  refused by the service, or no such user or event
      2  wrong usage
      3  not logged in
      4  no response, or the service is unavailable
    130  ended by Ctrl-C at a question
    """
}
