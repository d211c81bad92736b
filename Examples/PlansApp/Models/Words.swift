import MusterKit

/// The service's words in those of the user. A word that this version does not know gets a neutral one.
extension GuestStatus {
  var title: String {
    switch self {
    case .invited: "No answer yet"
    case .going: "Going"
    case .maybe: "Maybe"
    case .declined: "Not going"
    case .waitlisted: "Waiting list"
    case .pending: "Waiting for a host"
    default: "Other"
    }
  }
}

extension ReportReason {
  var title: String {
    switch self {
    case .spam: "Spam"
    case .harassment: "Harassment"
    case .hate: "Hate"
    case .violence: "Violence"
    case .nudity: "Nudity"
    case .impersonation: "Pretends to be someone else"
    default: "Something else"
    }
  }
}

extension Answer {
  var title: String { GuestStatus(rawValue: rawValue).title }
}

extension Answerability.Reason {
  var sentence: String {
    switch self {
    case .noPlusOnes: "Guests of this event cannot bring anyone."
    case .tooManyPlusOnes(let maximum): "You can bring at most \(maximum)."
    case .hosting, .cancelled, .archived, .pending, .closed, .noRoom: problemType.sentence ?? "This is not possible."
    }
  }
}

extension FieldProblem {
  var sentence: String {
    switch (field, code) {
    case ("password", .weakPassword): "This password is too easy to guess."
    case ("password", _): "A password has at least 8 characters."
    case ("username", _): "A username has 3 to 30 letters, digits, dots, dashes and underscores."
    case ("email", _): "This is not an e-mail address."
    case (_, .notAFriend): "You can only invite friends."
    default: "One of the values is too long, too high or too low."
    }
  }
}
