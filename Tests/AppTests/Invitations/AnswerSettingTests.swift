import Postgres
import Testing

@testable import App

/// The deadline for answers, answers that hosts set, reminders, and events that are repeated.
@Suite struct AnswerSettingTests {
  private func run(
    queuesWrites: Bool = true,
    _ body: @escaping @Sendable (TestApp, _ ana: Phone, _ ben: Phone, _ cleo: Phone) async throws -> Void
  ) async throws {
    try await TestApp.run(["MUSTER_THROTTLING": "off"], queuesWrites: queuesWrites) { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await app.befriend(ana, cleo)
      try await body(app, ana, ben, cleo)
      try await app.takeNotifications()
    }
  }

  @Test func `after the deadline, only a host sets an answer, within the capacity`() async throws {
    try await run { app, ana, ben, cleo in
      let event = try await ana.createEvent("Swim", inviting: [ben, cleo], capacity: 1)["id"].string ?? ""
      try await ben.answer("maybe", to: event)
      try await ana.edit(event, #"{"answerBy": "2020-01-01T00:00:00Z"}"#)
      #expect(try await ben.get("events/\(event)")["answerBy"].string == "2020-01-01T00:00:00Z")
      try await app.takeNotifications()
      #expect(try await ben.answer("going", to: event, expecting: 409).problem == "answers-closed")
      // A repeated answer changes nothing.
      try await ben.answer("maybe", to: event)
      try await ana.setAnswer("going", of: ben, to: event)
      try await ana.setAnswer("going", of: cleo, to: event)
      #expect(try await ben.get("events/\(event)")["myStatus"].string == "going")
      #expect(try await cleo.get("events/\(event)")["myStatus"].string == "waitlisted")
      let received = try await app.takeNotifications()
      #expect(received.map(\.type) == ["answer-set", "answer-set"] && received.map(\.recipient) == [ben.id, cleo.id])
      #expect(received[0].payload["message"].string == "Ana says you are going to “Swim”.")
      #expect(try await ben.setAnswer("declined", of: cleo, to: event, expecting: 403).problem == "not-a-host")
      let dev = try await app.signUp("dev")
      #expect(try await ana.setAnswer("going", of: dev, to: event, expecting: 404).problem == "guest-not-found")
      #expect(try await ana.remind(of: event, expecting: 409).problem == "answers-closed")
    }
  }

  @Test func `the deadline is not after the start, and null clears it`() async throws {
    try await run { app, ana, _, _ in
      let event = try await ana.createEvent(startTime: "2030-05-01T18:00:00Z", endTime: nil)["id"].string ?? ""
      try await ana.edit(event, #"{"answerBy": "2030-05-01T18:00:00Z"}"#)
      let late = try await ana.edit(event, #"{"answerBy": "2030-05-01T18:00:01Z"}"#, expecting: 422)
      #expect(late.json["errors"][0]["field"].string == "answerBy")
      try await ana.edit(event, #"{"startTime": "2030-05-01T17:00:00Z"}"#, expecting: 422)
      try await ana.edit(event, #"{"answerBy": null}"#)
      #expect(try await ana.get("events/\(event)")["answerBy"] == .null)
    }
  }

  @Test func `a reminder reaches each guest without an answer once a day`() async throws {
    try await run { app, ana, ben, cleo in
      let event = try await ana.createEvent("Swim", inviting: [ben, cleo])["id"].string ?? ""
      try await cleo.answer("declined", to: event)
      try await app.takeNotifications()
      let counts = try await app.race(4) { _ in try await ana.send("POST", "events/\(event)/reminders") }
      #expect(counts == [200: 4])
      let received = try await app.takeNotifications()
      #expect(received.map(\.type) == ["answer-reminder"] && received.map(\.recipient) == [ben.id])
      #expect(received[0].payload["message"].string == "Ana asks for your answer to “Swim”.")
      try await app.database.execute("UPDATE invitations SET reminded_at = now() - interval '25 hours'")
      #expect(try await ana.remind(of: event).json["reminded"].int == 1)
      #expect(try await ana.remind(of: event).json["reminded"].int == 0)
      #expect(try await app.takeNotifications().count == 1)
    }
  }

  @Test func `a copy has the same fields at another time, and the guests who are still friends`() async throws {
    try await run { app, ana, ben, cleo in
      let original = try await ana.createEvent(
        "Swim", inviting: [ben, cleo], capacity: 3, startTime: "2030-05-01T18:00:00Z", endTime: "2030-05-01T20:00:00Z")
      let event = original["id"].string ?? ""
      try await ana.edit(event, #"{"note": "Deep", "answerBy": "2030-04-30T18:00:00Z"}"#)
      try await ana.addHost(cleo, to: event)
      try await ana.cancelEvent(event)
      try await app.takeNotifications()
      let copy = try await ana.duplicate(event, #"{"startTime": "2030-05-08T18:00:00Z", "invite": true}"#).json
      #expect(
        [copy["title"], copy["note"], copy["endTime"], copy["answerBy"], copy["status"]].map(\.string)
          == ["Swim", "Deep", "2030-05-08T20:00:00Z", "2030-05-07T18:00:00Z", "scheduled"])
      #expect(copy["capacity"].int == 3 && copy["hosts"].array.count == 1 && copy["counts"]["invited"].int == 1)
      #expect(try await app.takeNotifications().map(\.type) == ["event-invited"])
      let own = try await cleo.duplicate(event, #"{"startTime": "2030-05-08T18:00:00Z", "endTime": null}"#).json
      #expect(own["creator"]["id"].string == cleo.id && own["endTime"] == .null && own["counts"]["invited"].int == 0)
      try await ben.duplicate(event, #"{"startTime": "2030-05-08T18:00:00Z"}"#, expecting: 403)
    }
  }

  enum GuestKind: CaseIterable {
    case invitees, visitors

    /// Two guests, and what each of them does to go.
    fileprivate func guests(
      of event: String, by ana: Phone, _ invitees: [Phone], in app: TestApp
    ) async throws -> [(id: String, goes: @Sendable () async throws -> APIResponse)] {
      switch self {
      case .invitees:
        return invitees.map { guest in
          (guest.id, { try await guest.send("PUT", "events/\(event)/invitations/me", #"{"status": "going"}"#) })
        }
      case .visitors:
        let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
        let visits = [
          try await app.visit(link.token, "maybe"), try await app.visit(link.token, name: "Yan", "maybe"),
        ]
        return visits.map { visit in
          ("\(visit.id)", { try await app.submit(visit.path, ["do": "answer", "answer": "going"]) })
        }
      }
    }
  }

  @Test(arguments: GuestKind.allCases)
  func `hosts and guests who answer at once never exceed the capacity`(_ kind: GuestKind) async throws {
    try await run(queuesWrites: false) { app, ana, ben, cleo in
      for round in 0..<8 {
        let invitees = kind == .invitees ? [ben, cleo] : []
        let event = try await ana.createEvent("Swim \(round)", inviting: invitees, capacity: 1)["id"].string ?? ""
        let guests = try await kind.guests(of: event, by: ana, invitees, in: app)
        let statuses = try await app.race(4) { index in
          let guest = guests[index % 2]
          guard index < 2 else { return try await guest.goes() }
          return try await ana.send("PUT", "events/\(event)/invitations/\(guest.id)", #"{"status": "going"}"#)
        }
        #expect(statuses == (kind == .invitees ? [200: 4] : [200: 2, 303: 2]))
        let counts = try await ana.get("events/\(event)")["counts"]
        #expect(
          ["going", "waitlisted", "invited", "maybe"].map { counts[$0].int } == [1, 1, 0, 0], "\(counts)")
      }
      try await app.expectConsistency()
    }
  }
}
