import ArgumentParser
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

struct EventArgument: ParsableArguments {
  @Argument(
    help: ArgumentHelp(
      "The event: a part of its title, its id, or the beginning or end of the id.", valueName: "event"))
  var name: String
}

/// Finds an event by its id, the beginning or end of the id, or a part of the title.
enum EventMatch {
  /// The minimum length of a partial id. Shorter texts are titles.
  private static let minimumIDPart = 4

  /// Seconds. An event without an end counts as over after this time.
  private static let usualLength = 6.0 * 3600

  /// The events that a text may mean. An event whose whole title it is comes before all others.
  static func candidates(for text: String, in events: [Event]) -> [Event] {
    let found = matches(for: text, in: events)
    let exact = found.filter { folded($0.title) == folded(text) }
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
    let wanted = folded(text)
    guard !wanted.isEmpty else { return [] }
    let id = text.lowercased()
    return events.filter { event in
      let whole = event.id.description
      let isPart = id.count >= minimumIDPart && (whole.hasPrefix(id) || whole.hasSuffix(id))
      return isPart || folded(event.title).contains(wanted)
    }
  }

  private static func folded(_ text: String) -> String {
    text.trimmingCharacters(in: .whitespaces)
      .folding(options: [.caseInsensitive, .diacriticInsensitive, .widthInsensitive], locale: nil)
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
