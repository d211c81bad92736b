import Foundation
import MusterKit

/// Finds the event that a command names.
extension Account {
  /// An event to show. Archived events count if no live event has the name.
  func event(named name: String) async throws -> Event {
    if let id = Event.ID(name) { return try await client.events.get(id) }
    let live = try await responses.pages { try await client.events.list(limit: $0, cursor: $1) }.value
    var found = EventMatch.candidates(for: name, in: live)
    if found.isEmpty {
      let past = try await responses.pages { try await client.events.past(limit: $0, cursor: $1) }.value
      found = EventMatch.candidates(for: name, in: past)
    }
    return try Account.only(found, named: name)
  }

  /// A share link to an event.
  func link(named name: String, to event: Event) async throws -> ShareLink {
    let found = LinkMatch.candidates(for: name, in: try await client.events.links.list(of: event.id))
    guard let only = found.first, found.count == 1 else {
      let reason = found.isEmpty ? "has no link" : "has several links"
      throw Failure.refused("“\(event.title)” \(reason) \"\(name)\". `musterctl events links list` lists them.")
    }
    return only
  }

  /// An event to answer or change.
  func changeableEvent(named name: String) async throws -> Event {
    if let id = Event.ID(name) { return try await client.events.get(id) }
    let live = try await responses.pages { try await client.events.list(limit: $0, cursor: $1) }.value
    let found = EventMatch.candidatesForChange(for: name, in: live)
    if found.isEmpty, let cancelled = EventMatch.candidates(for: name, in: live).first {
      throw Failure.refused("“\(cancelled.title)” is cancelled and no longer changes.")
    }
    return try Account.only(found, named: name)
  }

  private static func only(_ found: [Event], named name: String) throws -> Event {
    switch found.count {
    case 0: throw Failure.refused("There is no event \"\(name)\". `musterctl events` lists your events.")
    case 1: return found[0]
    default: throw Failure.refused("\"\(name)\" matches several events:\(listing(found))")
    }
  }

  private static func listing(_ events: [Event]) -> String {
    let times = TimeText.here
    let ids = ShortID(events.map(\.id))
    let shown = events.prefix(10).map {
      "\n  \(ids.of($0.id))  \(times.dayAndTime($0.startTime))  \($0.title.safeLine)"
    }
    return shown.joined() + (events.count > 10 ? "\n  ..." : "")
  }
}
