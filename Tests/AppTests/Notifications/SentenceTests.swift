import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The sentences of notifications, and the file from which apps translate them.
@Suite struct SentenceTests {
  private static let now = Timestamp.now()

  /// At least one notice of each sentence.
  private static var notices: [Notice] {
    let (event, title) = (Event.ID.new(), "Picnic")
    let ana = Person(id: .new(), username: "ana", displayName: "Ana Duarte", pictureURL: nil)
    let (invitee, zoe) = (Notice.NamedGuest(ana), Notice.NamedGuest(id: .new(), name: "Zoe"))
    func edit(_ fields: String...) -> Notice {
      .eventUpdated(event, title, fields.map { Notice.FieldChange(field: $0, old: "a", new: "b") }, by: ana.id)
    }
    var notices: [Notice] = [
      .friendRequest(.new(), from: ana), .friendAccepted(by: ana), .eventInvited(event, title, by: ana),
      edit("startTime", "endTime"), edit("unknown"), .eventKeptLocalTime(event, title, []),
      .eventCancelled(event, title, by: ana.id),
      .invitationWithdrawn(event, title), .waitlistPromoted(event, title, guest: ana.id),
      .guestPromoted(event, title, invitee, by: .new()),
      .eventReminder(event, title, start: now.adding(seconds: 3600)),
      .eventReminder(event, title, start: now.adding(seconds: 600)), .sessionRevoked(.new()),
      .accountClaimed(ana.id, User.Leftovers(friends: 1, events: 2, links: 3)),
      .hostOffered(event, title, .new(), by: ana), .hostAdded(event, title, by: ana),
      .answerReminder(event, title, by: ana),
    ]
    for field in Event.Plan.fields { notices.append(edit(field.setting.name)) }
    for status in Invitation.Status.allCases {
      // Those who decline bring no one, and to be invited is no answer.
      for plusOnes in 0...([.declined, .invited, .pending].contains(status) ? 0 : 2) {
        notices.append(.guestAnswered(event, title, invitee, status, with: plusOnes))
        notices.append(.guestAnswered(event, title, zoe, status, with: plusOnes))
        notices.append(.answerMerged(event, title, status, with: plusOnes))
        notices.append(.answerProposed(event, title, .new(), status, with: plusOnes))
      }
      notices.append(.answerSet(event, title, status, by: ana))
    }
    for plusOnes in 0...2 {
      notices.append(.approvalRequested(event, title, zoe, with: plusOnes))
      notices.append(.guestPromoted(event, title, zoe, with: plusOnes, by: nil))
    }
    for (count, named) in [(2, [zoe]), (600, [zoe]), (600, [])] {
      for pending in [0, count] {
        notices.append(.guestsAnswered(event, title, count: count, pending: pending, named: named))
      }
    }
    for plusOnes in 1...2 {
      notices.append(.waitlistPromoted(event, title, guest: ana.id, with: plusOnes))
      notices.append(.guestPromoted(event, title, invitee, with: plusOnes, by: .new()))
    }
    return notices
  }

  private struct Row {
    let format: String
    /// The names of the arguments.
    let parts: [String]
  }

  /// The sentences that apps translate, by key. A comment above each names its arguments.
  private static func table() throws -> [String: Row] {
    let file = Program.checkout.appending(path: "docs/Localizable.strings")
    var table: [String: Row] = [:]
    for match in try String(contentsOf: file, encoding: .utf8).matches(of: /\/\* (.*) \*\/\n"([^"]+)" = "([^"]+)";\n/) {
      let parts = match.1 == "no arguments" ? [] : match.1.split(separator: ", ").map(String.init)
      #expect(
        table.updateValue(Row(format: String(match.3), parts: parts), forKey: String(match.2)) == nil, "\(match.2)")
    }
    return table
  }

  private func rendered(_ notice: Notice) throws -> JSON {
    try JSON(parsing: Notice.rendered(notice.stored.payload, at: Self.now).text.utf8)
  }

  @Test func `the strings to translate are all sentences, with their arguments in order`() throws {
    let table = try Self.table()
    var (keys, types): (Set<String>, Set<String>) = ([], [])
    for notice in Self.notices {
      let payload = try rendered(notice)
      let key = try #require(payload["locKey"].string)
      let args = payload["locArgs"].array.compactMap(\.string)
      let row = try #require(table[key], "\(key) is not in the file")
      var sentence = row.format
      for (index, arg) in args.enumerated() { sentence = sentence.replacing("%\(index + 1)$@", with: arg) }
      #expect(payload["message"].string == sentence, "\(key)")
      #expect(args.count == row.parts.count, "\(key)")
      for (arg, part) in zip(args, row.parts) where payload[part] != .null {
        #expect((payload[part].string ?? payload[part].int.map { "\($0)" }) == arg, "\(key)")
      }
      keys.insert(key)
      types.insert(notice.stored.kind.rawValue)
    }
    #expect(keys == Set(table.keys))
    #expect(types == Set(Notice.Kind.allCases.map(\.rawValue)))
    // Android's names of the keys also differ.
    #expect(Set(keys.map { $0.replacing(/[-.]/, with: "_") }).count == keys.count)
  }

  @Test func `a title that looks like a format or a quotation is an argument as it is`() throws {
    let title = #"%1$@ “%2$@” \ " %"#
    let payload = try rendered(.eventCancelled(.new(), title, by: .new()))
    #expect(payload["message"].string == "“\(title)” was cancelled.")
    #expect(payload["locArgs"] == .array([.string(title)]))
  }
}
