import MusterKit

/// A question before changes are dropped that were never sent.
enum UnsentQuestion: Hashable {
  case loggingOut(Int)
  /// Other users of this phone have left them.
  case leftBehind(by: [User.ID])

  var title: String {
    switch self {
    case .loggingOut(1): "One change was never sent."
    case .loggingOut(let number): "\(number) changes were never sent."
    case .leftBehind: "Another user’s changes were never sent."
    }
  }

  var message: String {
    switch self {
    case .loggingOut: "If you log out, they are lost. With a network, they are sent within seconds."
    case .leftBehind: "If they stay, they are sent when that user logs in again."
    }
  }

  var confirmation: String { if case .loggingOut = self { "Log out and lose them" } else { "Delete them" } }
}
