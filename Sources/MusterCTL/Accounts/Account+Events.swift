import ArgumentParser
import Foundation
import MusterKit

/// Finds the event that a command names.
extension Account {
  /// An event to show. Archived events count if no live event has the name.
  func event(named name: String) async throws -> Event {
    if let id = Event.ID(name) { return try await client.events.get(id) }
    let live = try await responses.pages { try await client.events.list(limit: $0, cursor: $1) }.value
    let found = EventMatch.candidates(for: name, in: live)
    guard found.isEmpty else { return try Account.only(found, named: name, of: live) }
    let past = try await responses.pages { try await client.events.past(limit: $0, cursor: $1) }.value
    return try Account.only(EventMatch.candidates(for: name, in: past), named: name, of: live + past)
  }

  /// A share link to an event.
  func link(named name: String, to event: Event) async throws -> ShareLink {
    let found = LinkMatch.candidates(for: name, in: try await client.events.links.list(of: event.id))
    guard let only = found.first, found.count == 1 else {
      let reason = found.isEmpty ? "has no link" : "has several links"
      throw Failure.refused(
        "“\(event.title)” \(reason) \"\(name)\". `musterctl events links list` lists them.",
        candidates: found.map { .members("id", "kind", "url", of: $0) })
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
    return try Account.only(found, named: name, of: live.filter { $0.status != .cancelled })
  }

  /// - Parameter events: among which a mistyped name may be.
  private static func only(_ found: [Event], named name: String, of events: [Event]) throws -> Event {
    if let only = found.first, found.count == 1 { return only }
    let similar = found.isEmpty ? Suggestion.things(for: name, in: events) { [$0.title] } : found
    let candidates = similar.map { JSONValue.members("id", "title", "startTime", of: $0) }
    guard found.isEmpty else {
      throw Failure.refused("\"\(name)\" matches several events:\(listing(found))", candidates: candidates)
    }
    let advice =
      similar.isEmpty ? "`musterctl events` lists your events." : Suggestion.question(similar.map { "“\($0.title)”" })
    throw Failure.refused("There is no event \"\(name)\". \(advice)", candidates: candidates)
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

/// Finds an event by its id, the beginning or end of the id, or a part of the title.
enum EventMatch {
  /// The minimum length of a partial id. Shorter texts are titles.
  static let minimumIDPart = 4

  /// Seconds. An event without an end counts as over after this time.
  private static let usualLength = 6.0 * 3600

  /// The events that a text may mean. An event whose whole title it is comes before all others.
  static func candidates(for text: String, in events: [Event]) -> [Event] {
    let found = matches(for: text, in: events)
    let exact = found.filter { $0.title.folded == text.folded }
    return exact.count == 1 ? exact : found
  }

  /// The events that a text may mean in a command that changes one: never a cancelled one, and one that is over only if
  /// all are.
  static func candidatesForChange(for text: String, in events: [Event], now: Date = Date()) -> [Event] {
    let open = matches(for: text, in: events).filter { $0.status != .cancelled }
    let coming = open.filter { ($0.endTime ?? $0.startTime.addingTimeInterval(usualLength)) > now }
    return candidates(for: text, in: coming.isEmpty ? open : coming)
  }

  private static func matches(for text: String, in events: [Event]) -> [Event] {
    let wanted = text.folded
    guard !wanted.isEmpty else { return [] }
    let id = text.lowercased()
    return events.filter { event in
      let whole = event.id.description
      let isPart = id.count >= minimumIDPart && (whole.hasPrefix(id) || whole.hasSuffix(id))
      return isPart || event.title.folded.contains(wanted)
    }
  }
}

struct LinkArgument: ParsableArguments {
  @Argument(help: ArgumentHelp("The link: its URL, its id, or the beginning or end of the id.", valueName: "link"))
  var name: String
}

/// Finds a share link by its URL, its id, or the beginning or end of the id.
enum LinkMatch {
  /// The minimum length of a partial id.
  private static let minimumIDPart = 4

  static func candidates(for text: String, in links: [ShareLink]) -> [ShareLink] {
    let id = text.lowercased()
    return links.filter { link in
      let whole = link.id.description
      let isPart = id.count >= minimumIDPart && (whole.hasPrefix(id) || whole.hasSuffix(id))
      return isPart || link.url?.absoluteString == text
    }
  }

  /// The token in a link, or the token itself.
  static func token(in text: String) -> String? {
    let text = text.trimmingCharacters(in: .whitespaces)
    guard text.contains("/") else { return text.isEmpty ? nil : text }
    // People copy links without their scheme.
    return URL(string: text.contains("://") ? text : "https://" + text).flatMap(ShareLink.token)
  }
}

/// The ends of ids that tell the items of a list apart. Their beginnings are times, which are often equal.
struct ShortID {
  private static let minimum = 6

  private let length: Int

  init<Thing>(_ ids: [Identifier<Thing>]) {
    let texts = ids.map(\.description)
    length = [ShortID.minimum, 8, 12].first { ShortID.areUnique(texts, $0) } ?? 36
  }

  func of<Thing>(_ id: Identifier<Thing>) -> String { String(id.description.suffix(length)) }

  private static func areUnique(_ texts: [String], _ length: Int) -> Bool {
    let whole = Set(texts)
    return Set(whole.map { $0.suffix(length) }).count == whole.count
  }
}
