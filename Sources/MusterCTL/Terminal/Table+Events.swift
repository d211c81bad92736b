import Foundation
import MusterKit

extension Table {
  static func events(_ events: [Event]) -> Table {
    let times = TimeText.here
    let ids = ShortID(events.map(\.id))
    return Table(
      [
        .init("ID", .optional), .init("WHEN"), .init("TITLE", .flexible), .init("YOU"), .init("GOING", .optional),
        .init("HOST", .optional), .init("PLACE", .optional),
      ],
      rows: events.map { event in
        let isCancelled = event.status == .cancelled
        let state: Cell = isCancelled ? Cell("cancelled", .red) : Cell(event.myAnswer, event.myStatus.style)
        return [
          Cell(ids.of(event.id), .faint), Cell(times.dayAndTime(event.startTime)),
          Cell(event.title, isCancelled ? .faint : .bold), state, Cell(event.goingText),
          Cell(event.creator?.username ?? ""), Cell(event.location?.name ?? ""),
        ]
      })
  }

  /// With ids if there are visitors, who have no usernames.
  static func guests(_ guests: [Guest]) -> Table {
    let ids = guests.contains { $0.user == nil } ? ShortID(guests.map(\.id)) : nil
    return Table(
      (ids == nil ? [] : [.init("ID", .optional)])
        + [.init("USERNAME"), .init("NAME", .flexible), .init("ANSWER")],
      rows: guests.map { guest in
        let answer = guest.plusOnes > 0 ? "\(guest.status.text) +\(guest.plusOnes)" : guest.status.text
        let id = ids.map { [Cell($0.of(guest.id), .faint)] } ?? []
        return id + [Cell(guest.user?.username ?? "-"), Cell(guest.name), Cell(answer, guest.status.style)]
      })
  }
}

extension Event {
  /// Such as `3` or `3 of 6`; empty if it is not known.
  fileprivate var goingText: String {
    guard let going = counts?.going else { return "" }
    return capacity.map { "\(going) of \($0)" } ?? "\(going)"
  }
}

extension Table {
  static func links(_ links: [ShareLink]) -> Table {
    let times = TimeText.here
    let ids = ShortID(links.map(\.id))
    return Table(
      [
        .init("ID"), .init("RULES", .flexible), .init("JOINED"), .init("EXPIRES", .optional), .init("LINK", .ownLine),
      ],
      rows: links.map { link in
        var joined = link.maxGuests.map { "\(link.joined) of \($0)" } ?? "\(link.joined)"
        if link.unmailed > 0 { joined += ", \(link.unmailed) unmailed" }
        return [
          Cell(ids.of(link.id), .faint), Cell(link.rulesText), Cell(joined),
          Cell(link.expiresAt.map(times.dayAndTime) ?? "after the event"), Cell(link.url?.absoluteString ?? "-"),
        ]
      })
  }
}

extension ShareLink {
  /// Such as `answer, shows names, up to 2 plus-ones, e-mail required, no approval`. Defaults are left out.
  var rulesText: String {
    var rules = [kind.rawValue]
    if shows != .counts { rules.append("shows \(shows)") }
    guard kind == .answer else { return rules.joined(separator: ", ") }
    if maxPlusOnes > 0 { rules.append("up to \(maxPlusOnes) plus-one\(maxPlusOnes == 1 ? "" : "s")") }
    if email != .optional { rules.append(email == .off ? "no e-mail" : "e-mail \(email)") }
    if !approval { rules.append("no approval") }
    return rules.joined(separator: ", ")
  }
}

extension Table {
  /// Users, each with a time that `title` explains.
  static func people(_ people: [(user: Person, time: Date)], title: String) -> Table {
    Table(
      [.init("USERNAME"), .init("NAME", .flexible), .init(title, .optional)],
      rows: people.map { user, time in
        [.init(user.username), .init(user.displayName), .init(TimeText.here.day(time), .faint)]
      })
  }
}
