import Foundation
import MusterKit

extension Error {
  /// A sentence for the user. An app with translations has these in its string catalog.
  var sentence: String {
    switch self as? MusterError {
    case .refused(let problem): problem.sentence
    case .loggedOut: "Please log in again."
    case .unreachable: "The server cannot be reached. Please check your connection."
    case .tokensUnavailable: "Please unlock your phone and try again."
    case .unexpectedResponse: "Something went wrong. Please try again later."
    case nil:
      switch self as? StoreError {
      case .disk: "Your phone is full. Please make room and try again."
      case .notLoaded: "This is not loaded yet. Please try again in a moment."
      default: "Something went wrong. Please try again."
      }
    }
  }
}

extension RefusedWrite {
  var sentence: String {
    if case .approve? = write, newerState != nil {
      return "This guest has asked again or changed the answer in the meantime."
    }
    return switch reason {
    case .refused(let problem): problem.sentence
    case .superseded(by: .answer(let status, let plusOnes)):
      "You have answered “\(status.title)”" + (plusOnes > 0 ? ", with \(plusOnes) more," : "")
        + " in the meantime, on another device."
    case .superseded(by: .event): "Another host has changed the same in the meantime."
    case .superseded: "You have changed this in the meantime, on another device."
    case .unknown: "This was sent, but the server did not confirm it. Please look whether it has happened."
    case .damaged: "Your phone could not keep this. Please look whether it has happened."
    case .withoutSubject: "The event could not be created."
    }
  }
}

extension Problem {
  /// A sentence for the user. A problem that the app does not know is described by its status.
  var sentence: String {
    if let retryAfter, status == 429 {
      let time = Duration.seconds(retryAfter).formatted(
        .units(allowed: [.days, .hours, .minutes, .seconds], width: .wide, maximumUnitCount: 1))
      return "Too many attempts. Please wait \(time)."
    }
    if type == .invalidFields, !errors.isEmpty { return errors.map(\.sentence).joined(separator: " ") }
    return type.sentence
      ?? (status >= 500 ? "The server is busy. Please try again later." : "This is not possible. Please refresh.")
  }
}

extension Problem.Slug {
  var sentence: String? { Self.sentences[self] }
  private static let sentences: [Self: String] = [
    .alreadyFriends: "You are already friends.",
    .answerProposed: "This guest has an account, and is deciding about the answer.",
    .answersClosed: "The deadline for answers has passed. A host can still set your answer.",
    .approvalPending: "A host has to approve you first.",
    .emailBelongsToAccount: "An account already has this address. Please log in to it.",
    .emailTaken: "Another account has this address.",
    .emailUnverified: "Please open the link in our mail first.",
    .eventArchived: "This event is over.",
    .eventCancelled: "This event was cancelled.",
    .eventNotFound: "You are no longer invited to this event.",
    .friendRequestClosed: "This request has been answered or cancelled in the meantime.",
    .friendRequestNotFound: "This request is no longer there.",
    .guestNotFound: "This guest is no longer on the list.",
    .idTaken: "Something went wrong. Please create it again.",
    .identityNotProven: "Please log in with Apple or Google again.",
    .invalidIdentityToken: "Apple could not confirm who you are. Please try again.",
    .linkExpired: "This link has expired. Please ask a host for a new one.",
    .linkFull: "This link has been used by as many guests as it admits.",
    .linkNotFound: "This link does not work any more. Please ask a host for a new one.",
    .linkOnlyShows: "This link only shows the event. Please ask a host for an invitation.",
    .lostUpdate: "Another host has changed this event in the meantime.",
    .noPassword: "You have no password. Please use a code.",
    .noRoom: "There is not enough room for that many people.",
    .notAHost: "Only a host of this event can do this.",
    .notTheCreator: "Only the creator of this event can do this.",
    .ownEvent: "You are hosting this event.",
    .providerNotConfigured: "This server does not offer Sign in with Apple.",
    .providerUnavailable: "Apple cannot be reached. Please try again later.",
    .requestsClosed: "This user does not accept friend requests.",
    .tooManyLinks: "This event has too many links. Please revoke one first.",
    .userNotFound: "This user is no longer there.",
    .usernameTaken: "This username is taken.",
    .wrongCode: "This code is wrong or too old.",
    .wrongCredentials: "The name or the password is wrong.",
    .wrongPassword: "The password is wrong.",
  ]
}
