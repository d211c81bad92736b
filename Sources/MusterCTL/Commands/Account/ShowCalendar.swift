import ArgumentParser
import Foundation
import MusterKit

struct ShowCalendar: AccountCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show the link to your calendar feed.")

  @OptionGroup var options: AccountOptions

  func run(as account: Account, on console: Console) async throws {
    let reply = try await account.responses.reply { try await account.client.me.calendarLink() }
    guard reply.value != nil || console.printsJSON else {
      return console.note("You have no calendar link. `musterctl calendar replace` creates one.")
    }
    try console.show(reply) { $0.map { console.lines(of: $0.fields) } ?? [] }
  }
}

extension CalendarLink {
  var fields: [(name: String, value: String)] {
    [
      ("Link", url.absoluteString), ("Subscribe", webcalUrl.absoluteString),
      ("Since", TimeText.here.dayAndTime(createdAt)),
    ]
  }
}
