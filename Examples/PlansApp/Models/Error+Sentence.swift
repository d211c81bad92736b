import MusterKit

extension Error {
  /// A sentence for the user. An app with translations has these in its string catalog.
  var sentence: String {
    switch self as? MusterError {
    case .refused(let problem): problem.sentence
    case .loggedOut: "You are logged out. Please log in again."
    case .unreachable: "The server cannot be reached. Please check your connection."
    case .tokensUnavailable: "Please unlock your phone and try again."
    case .unexpectedResponse, nil: "Something went wrong. Please try again later."
    }
  }
}

extension RefusedWrite {
  /// Why a change did not happen, for the user.
  var sentence: String {
    switch reason {
    case .refused(let problem): problem.sentence
    case .superseded(by: .answer(let status, _)): "You have answered \(status) in the meantime, on another device."
    case .superseded: "This has changed in the meantime."
    case .unknown: "This was sent, but the server did not confirm it. Please look whether it has happened."
    case .withoutSubject: "The event could not be created."
    case .damaged: "This could not be read from your phone any more. Please look whether it has happened."
    }
  }

  /// Whether the same change may succeed now.
  var canBeSentAgain: Bool { (isUnknown || newerState != nil) && write != nil }
}

extension Problem {
  /// A sentence for the user. A problem that the app does not know is described by its status.
  var sentence: String {
    switch type {
    case .wrongCredentials: "The name or the password is wrong."
    case .tooManyAttempts: "Too many attempts. Please wait \(retryAfter ?? 60) seconds."
    case .eventCancelled: "This event was cancelled."
    case .eventArchived: "This event is over."
    case .eventNotFound: "You are no longer invited to this event."
    default: status >= 500 ? "The server is busy. Please try again later." : "This is not possible. Please refresh."
    }
  }
}
