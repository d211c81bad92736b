import MusterKit

/// States of guests, for people.
extension GuestStatus {
  var text: String {
    switch self {
    case .waitlisted: "waiting"
    case .pending: "awaiting approval"
    default: rawValue
    }
  }

  var style: TextStyle {
    switch self {
    case .going: .green
    case .maybe, .waitlisted, .pending: .yellow
    case .declined: .red
    default: .plain
    }
  }
}

extension Event {
  /// The user's part in the event.
  var myPart: String { myRole == .guest ? myStatus.text : "host" }
}

extension Counts {
  /// Such as `2 going, 1 maybe`.
  var text: String {
    let counts: [(Int, GuestStatus)] = [
      (going, .going), (maybe, .maybe), (waitlisted, .waitlisted), (pending, .pending), (invited, .invited),
      (declined, .declined),
    ]
    let shown = counts.filter { $0.0 > 0 }.map { "\($0) \($1.text)" }
    return shown.isEmpty ? "none" : shown.joined(separator: ", ")
  }
}
