/// The verbs of random users: one at a time, compared with ``Model``, and many at once, in a ``History``. Named for acts,
/// except for what visitors, workers and operators do.
enum RandomVerb: String, CaseIterable, Sendable {
  case send = "sendFriendRequest"
  case accept = "acceptFriendRequest"
  case decline = "declineFriendRequest"
  case cancelRequest = "cancelFriendRequest"
  case unfriend = "endFriendship"
  case block, unblock
  case create = "createEvent"
  case edit = "editEvent"
  case invite = "inviteToEvent"
  case withdraw = "withdrawInvitation"
  case answer = "answerInvitation"
  case cancelEvent, createLink, revokeLink
  case join = "joinByLink"
  case approve = "approveGuest"
  case verify = "verifyEmail"
  case remind = "remindGuests"
  case duplicate = "duplicateEvent"
  case addHost, removeHost, setAnswer, acceptProposal, declineProposal
  case editProfile = "editMe"
  case deleteAccount = "deleteMe"
  case markRead = "markNotificationsRead"
  case choose = "setNotificationPreferences"
  case archive, visit, revisit, eraseVisit, confirm, merge, deliver
  case writeBio = "editMe.bio"
  case putPicture, removePicture, purge

  /// The name of the act.
  var act: String { String(rawValue.prefix { $0 != "." }) }

  /// How often it is done, in proportion to the others; 0 for never.
  var weights: (alone: Int, together: Int) {
    switch self {
    case .answer: (22, 12)
    case .send, .accept: (12, 9)
    case .visit: (12, 6)
    case .revisit: (9, 0)
    case .approve, .createLink: (8, 0)
    case .addHost: (8, 6)
    case .setAnswer: (8, 4)
    case .create: (9, 6)
    case .edit: (9, 9)
    case .unblock: (9, 7)
    case .invite: (8, 8)
    case .withdraw, .markRead, .join: (5, 3)
    case .eraseVisit: (5, 0)
    case .acceptProposal: (5, 1)
    case .editProfile: (4, 7)
    case .deleteAccount: (4, 0)
    case .decline, .cancelRequest: (6, 4)
    case .removeHost, .remind: (6, 3)
    // Often enough that the queued notices of one subject fit into one step of fan-out.
    case .deliver, .confirm, .merge: (12, 0)
    case .unfriend, .block: (3, 3)
    case .cancelEvent, .archive, .choose: (3, 2)
    case .revokeLink, .duplicate: (3, 0)
    case .verify: (2, 0)
    case .declineProposal: (2, 1)
    case .purge: (0, 3)
    case .putPicture, .removePicture: (0, 2)
    case .writeBio: (0, 1)
    }
  }

  /// Each verb as often as it is done.
  static func all(_ weight: ((alone: Int, together: Int)) -> Int) -> [RandomVerb] {
    allCases.flatMap { Array(repeating: $0, count: weight($0.weights)) }
  }

  /// Whether the verb may change the view of any event for any user.
  var isFarReaching: Bool {
    [.block, .unblock, .editProfile, .deleteAccount, .archive, .merge].contains(self)
  }
}
