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
