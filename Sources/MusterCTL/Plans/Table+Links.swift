import Foundation
import MusterKit

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
