import Foundation

/// What the rules of the service ask for besides the lists of the store. Only previews know it.
struct Surroundings: Sendable, Hashable {
  /// Archived events, latest first.
  var past: [Event] = []
  /// The guest lists.
  var guests: [UUID: [Guest]] = [:]
  /// The share links of events that the user hosts.
  var links: [UUID: [ShareLink]] = [:]
  /// Requests that were accepted, declined or cancelled.
  var closed: [FriendRequest] = []
  /// Everyone whom the user sees.
  var people: [UUID: PublicProfile] = [:]
  /// The blocked users whom the user saw before.
  var hidden: [UUID: PublicProfile] = [:]
  var recommended: [Recommendation] = []
}
