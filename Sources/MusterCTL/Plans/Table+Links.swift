import Foundation
import MusterClient

extension Table {
  static func links(_ links: [ShareLink]) -> Table {
    let times = TimeText.here
    let ids = ShortID(links.map(\.id))
    return Table(
      [
        .init("ID"), .init("KIND"), .init("JOINED", .optional), .init("EXPIRES", .optional), .init("LINK"),
      ],
      rows: links.map { link in
        let joined = link.maxGuests.map { "\(link.joined) of \($0)" } ?? "\(link.joined)"
        return [
          Cell(ids.of(link.id), .faint), Cell(link.kind.rawValue), Cell(joined),
          Cell(link.expiresAt.map(times.dayAndTime) ?? "after the event"), Cell(link.url?.absoluteString ?? "-"),
        ]
      })
  }
}
