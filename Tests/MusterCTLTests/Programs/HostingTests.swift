import Foundation
import MusterKit
import Testing

@testable import musterctl

/// Actions of hosts, and the ways in which links and calendars reach people.
@Suite struct HostingTests {
  private func json(_ demo: Demo, _ line: String, as user: String) async throws -> JSONValue {
    let text = try await demo.say("\(line) --json", as: user)
    return try JSONDecoder.muster().decode(JSONValue.self, from: Data(text.utf8))
  }

  private func refusal(_ demo: Demo, _ line: String, as user: String) async throws -> String {
    let result = try await demo.ctl(line.shellWords, as: user)
    #expect(result.status == 1 && result.output.isEmpty, "\(line): \(result)")
    return result.errors
  }

  @Test func `hosts are added and removed, remind guests and answer for them`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "ben", "cleo")
      _ = try await demo.say(
        "events create Quiz 'tomorrow 19:00' --for 2h --plus-ones 2 --answer-by 'tomorrow 12:00' --invite cleo,emre",
        as: "ana")
      let added = try await demo.say("events hosts add quiz ben", as: "ana")
      #expect(added.hasPrefix("Asked Ben Okafor (ben) to host “Quiz”, "))
      let listed = try await demo.say("proposals", as: "ben")
      #expect(listed.contains("to host") && listed.contains("“Quiz”, ") && listed.contains("ana"), "\(listed)")
      #expect(try await refusal(demo, "proposals accept nothing", as: "ben").contains("There is no proposal"))
      #expect(try await demo.say("proposals accept quiz", as: "ben").hasPrefix("You are a host of “Quiz”, "))
      _ = try await demo.say("events hosts add quiz cleo", as: "ana")
      #expect(try await demo.say("proposals decline quiz", as: "cleo") == "Declined to host “Quiz”.\n")
      let shown = try await demo.say("events show quiz", as: "ben")
      #expect(shown.contains("Hosts      Ana Duarte (ana), Ben Okafor (ben)\n"), "\(shown)")
      #expect(shown.contains("You        host\n") && shown.contains("Answer by  "))

      #expect(try await demo.say("events remind quiz", as: "ben").hasPrefix("Reminded 2 guests of “Quiz”, "))
      #expect(try await demo.say("events remind quiz", as: "ana").hasPrefix("No guest of “Quiz”, "))
      let set = try await demo.say("events answer-for quiz emre declined", as: "ben")
      #expect(set.hasPrefix("Set the answer of Emre Yılmaz (emre) to “Quiz”, ") && set.hasSuffix(": declined.\n"))
      let group = try await demo.say("answer quiz going --plus-ones 2", as: "cleo")
      #expect(group.hasPrefix("You are going to “Quiz”, ") && group.hasSuffix(", with 2 others.\n"))
      #expect(try await demo.say("answer quiz going --plus 1", as: "cleo").hasSuffix(", with 1 other.\n"))
      #expect(try await refusal(demo, "answer quiz going --plus-ones 3", as: "cleo").contains("--plus-ones: "))

      let noHost = try await refusal(demo, "events remind quiz", as: "cleo")
      #expect(noHost == "musterctl: Only the hosts of the event may do this.\n")
      #expect(try await refusal(demo, "events answer-for quiz hana going", as: "ana").contains("has no guest \"hana\""))
      #expect(try await refusal(demo, "events hosts remove quiz cleo", as: "ana").contains("\"cleo\" is not a host"))
      #expect(
        try await refusal(demo, "events hosts add quiz cleo", as: "ben")
          == "musterctl: Only the creator of the event may do this.\n")
      #expect(try await json(demo, "events remind quiz", as: "ana") == .object(["reminded": .integer(0)]))

      let copy = try await demo.say("events duplicate quiz 'fri 20:00' --invite", as: "ben")
      #expect(copy.hasPrefix("Created “Quiz”, ") && copy.contains(" 20:00. Invited "), "\(copy)")
      let removed = try await demo.say("events hosts remove quiz ben", as: "ana")
      #expect(removed.hasPrefix("Ben Okafor (ben) is no longer a host of “Quiz”, "))
      let past = try await demo.ctl(["events", "duplicate", "quiz", "2020-01-01 18:00"], as: "ana")
      #expect(past.status == 2 && past.errors.contains("Use --yes."))
    }
  }

  @Test func `a link is created, listed, joined and revoked`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "goran")
      _ = try await demo.say("events create Quiz 'tomorrow 19:00'", as: "ana")
      let url = try await demo.say("events links create quiz --max-guests 3 --shows names --no-approval", as: "ana")
        .trimmingCharacters(in: .newlines)
      #expect(url.wholeMatch(of: /http:\/\/muster\.test\/e\/[\w-]+/) != nil, "\(url)")
      let view = try await json(demo, "events links create quiz --kind view --expires 'in 2 hours'", as: "ana")
      #expect(view["kind"]?.string == "view" && view["expiresAt"]?.string != nil)
      let list = try await demo.say("events links list quiz", as: "ana")
      #expect(
        list.contains("answer, shows names, no approval  0 of 3  after the event") && list.contains(url), "\(list)")
      #expect(list.contains("view"))
      let narrow = try demo.terminal("events links list quiz --no-color", as: "ana", columns: 80)
      #expect(try await narrow.exitStatus() == 0)
      #expect(narrow.output.contains("0 of 3  after the event\n  \(url)\n"), "\(narrow.output)")

      let dead = try await demo.ctl(["join", try #require(view["url"]?.string)], as: "goran")
      #expect(dead.status == 1 && dead.errors.contains("only shows the event"))
      #expect(try await demo.say("join \(url)", as: "goran").hasPrefix("You are invited to “Quiz”, "))
      #expect(try await demo.say("answer quiz maybe", as: "goran").hasPrefix("You might come to “Quiz”, "))
      let again = try await demo.say("join \(url)", as: "goran")
      #expect(again.hasPrefix("You are already a guest of “Quiz”, ") && again.contains(": maybe."))
      #expect(try await demo.ctl(["join", "https://muster.test/x"], as: "goran").status == 2)

      #expect(try await refusal(demo, "events links list quiz", as: "goran").contains("Only the hosts"))
      let changed = try await demo.say(
        "events links edit quiz \(url) --shows counts --plus-ones 2 --email required --approval --clear max-guests",
        as: "ana")
      #expect(changed.hasPrefix("Changed the link to “Quiz”, "))
      #expect(changed.hasSuffix(": answer, up to 2 plus-ones, e-mail required.\n"), "\(changed)")
      let back = try await json(demo, "events links edit quiz \(url) --no-approval --email none", as: "ana")
      #expect(back["approval"] == .bool(false) && back["email"]?.string == "none" && back["maxGuests"] == .null)
      #expect(try await demo.ctl(["events", "links", "edit", "quiz", url], as: "ana").status == 2)
      let both = ["events", "links", "edit", "quiz", url, "--max-guests", "2", "--clear", "max-guests"]
      #expect(try await demo.ctl(both, as: "ana").status == 2)
      #expect(
        try await refusal(demo, "events links edit quiz \(url) --plus-ones 11", as: "ana").contains("--plus-ones: "))

      let revoked = try await demo.say("events links revoke quiz \(url)", as: "ana")
      #expect(revoked.hasPrefix("Revoked the link to “Quiz”, "))
      let id = try #require(view["id"]?.string?.suffix(8))
      #expect(try await json(demo, "events links revoke quiz \(id)", as: "ana") == .object([:]))
      #expect(try await refusal(demo, "events links revoke quiz \(id)", as: "ana").contains("has no link"))
      let none = try await demo.ctl(["events", "links", "list", "quiz"], as: "ana")
      #expect(none.status == 0 && none.output.isEmpty && none.errors.contains("There are no links."))
      #expect(try await refusal(demo, "join \(url)", as: "goran").hasPrefix("musterctl: "))
    }
  }

  /// Answers on the page of a share link, as a browser does.
  private func visit(_ demo: Demo, _ link: String, name: String) async throws {
    let token = try #require(link.split(separator: "/").last)
    let page = try #require(URL(string: "\(demo.url)/e/\(token)"))
    let transport = URLSessionTransport()
    let form = String(
      decoding: try await transport.send(TransportRequest(method: "GET", url: page)).body, as: UTF8.self)
    let secret = try #require(form.firstMatch(of: /name="form" value="([^"]+)"/)?.output.1)
    let body = Data("form=\(secret)&name=\(name)&answer=going&plusOnes=1".utf8)
    let headers = ["Content-Type": "application/x-www-form-urlencoded"]
    let response = try await transport.send(
      TransportRequest(method: "POST", url: page, headers: headers, body: body))
    #expect(response.status == 303, "\(String(decoding: response.body, as: UTF8.self))")
  }

  @Test func `guests who come through a link are listed, approved and turned away`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana", "goran")
      _ = try await demo.say("events create Quiz 'tomorrow 19:00' --plus-ones 2", as: "ana")
      let url = try await demo.say("events links create quiz --plus-ones 1 --email none", as: "ana")
        .trimmingCharacters(in: .newlines)
      for name in ["Zoe", "Zoe", "Yan"] { try await visit(demo, url, name: name) }
      #expect(try await demo.say("join \(url)", as: "goran").hasPrefix("You have asked to join “Quiz”, "))
      #expect(try await refusal(demo, "answer quiz going", as: "goran").hasPrefix("musterctl: A host must approve "))

      let list = try await demo.say("events guests quiz", as: "ana")
      func words(_ table: String) -> [[Substring]] { table.split(separator: "\n").map { $0.split(separator: " ") } }
      let rows = words(list)
      #expect(rows.first == ["ID", "USERNAME", "NAME", "ANSWER"])
      #expect(rows.contains { $0.dropFirst() == ["-", "Yan", "awaiting", "approval", "+1"] }, "\(list)")
      let several = try await refusal(demo, "events approve quiz zoe", as: "ana")
      #expect(several.contains("matches several guests. Use the id:\n"), "\(several)")
      let zoe = try #require(rows.first { $0.contains("Zoe") }?.first)
      let approved = try await demo.say("events approve quiz \(zoe)", as: "ana")
      #expect(approved.hasPrefix("Approved Zoe (visitor) as a guest of “Quiz”, "))
      #expect(try await demo.say("events approve quiz goran", as: "ana").contains(" (goran) as a guest of “Quiz”, "))
      #expect(try await demo.say("answer quiz going", as: "goran").hasPrefix("You are going to “Quiz”, "))
      let removed = try await demo.say("events withdraw quiz yan", as: "ana")
      #expect(removed.hasPrefix("Yan (visitor) is no longer a guest of “Quiz”, "))
      let set = try await demo.say("events answer-for quiz \(zoe) maybe", as: "ana")
      #expect(set.hasPrefix("Set the answer of Zoe (visitor) to “Quiz”, ") && set.hasSuffix(": maybe.\n"), "\(set)")
      let left = try await demo.say("events guests quiz", as: "ana")
      #expect(
        !left.contains("Yan") && words(left).contains { $0.dropFirst() == ["-", "Zoe", "maybe", "+1"] }, "\(left)")
      #expect(try await refusal(demo, "events approve quiz goran", as: "goran").contains("Only the hosts"))
      let revoked = try await demo.say("events links revoke quiz \(url) --remove-visitors", as: "ana")
      #expect(revoked.hasSuffix(", and removed its visitors.\n"), "\(revoked)")
      let users = words(try await demo.say("events guests quiz", as: "ana")).dropFirst()
      #expect(users.count == 1 && users.first?.contains("goran") == true)
    }
  }

  @Test func `the calendar link is shown, replaced and revoked`() async throws {
    try await Demo.run { demo in
      try await demo.logIn("ana")
      let none = try await demo.ctl(["calendar"], as: "ana")
      #expect(none.status == 0 && none.output.isEmpty && none.errors.contains("You have no calendar link."))
      #expect(try await json(demo, "calendar", as: "ana")["url"] == .null)
      let first = try await demo.say("calendar replace", as: "ana")
      #expect(first.contains("Link       http://muster.test/calendars/"), "\(first)")
      #expect(first.contains("Subscribe  webcal://muster.test/calendars/"))
      #expect(try await demo.say("calendar show", as: "ana") == first)
      let asked = try await demo.ctl(["calendar", "replace"], as: "ana")
      #expect(asked.status == 2 && asked.errors.contains("Use --yes."))
      #expect(try await demo.say("calendar replace --yes", as: "ana") != first)
      #expect(try await demo.ctl(["calendar", "revoke"], as: "ana").status == 2)
      #expect(try await demo.say("calendar revoke --yes", as: "ana") == "Your calendar link is revoked.\n")
      #expect(try await demo.ctl(["calendar", "show"], as: "ana").output.isEmpty)
    }
  }
}
