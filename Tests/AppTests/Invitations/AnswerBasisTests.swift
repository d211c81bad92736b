import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// Answers that say what they are based on.
@Suite struct AnswerBasisTests {
  /// Ana hosts an event of two places, with plus-ones. Ben and Cleo are invited.
  private func run(
    capacity: Int = 4,
    _ body:
      @escaping @Sendable (TestApp, _ ana: Phone, _ ben: Phone, _ cleo: Phone, String)
      async throws -> Void
  ) async throws {
    try await TestApp.run { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      let cleo = try await app.signUp("cleo")
      try await app.befriend(ana, cleo)
      let id = try await ana.createEvent(inviting: [ben, cleo], capacity: capacity)["id"].string ?? ""
      try await ana.edit(id, #"{"maxPlusOnes": 3}"#)
      try await body(app, ana, ben, cleo, id)
      try await app.takeNotifications()
    }
  }

  private func answer(_ phone: Phone, _ event: String, _ body: String) async throws -> APIResponse {
    try await phone.send("PUT", "events/\(event)/invitations/me", body)
  }

  private func expectSuperseded(
    _ response: APIResponse, by status: String, _ plusOnes: Int, sourceLocation: SourceLocation = #_sourceLocation
  ) {
    #expect(
      response.status == 409 && response.problem == "superseded", "\(response.body)", sourceLocation: sourceLocation)
    #expect(response.json["current"]["status"].string == status, sourceLocation: sourceLocation)
    #expect(response.json["current"]["plusOnes"].int == plusOnes, sourceLocation: sourceLocation)
  }

  @Test func `a newer answer stays, and the older one is refused with it`() async throws {
    try await run { app, _, ben, _, id in
      let friday = #"{"status": "going", "ifStatus": "invited", "ifPlusOnes": 0}"#
      #expect(try await answer(ben, id, #"{"status": "declined", "ifStatus": "invited"}"#).status == 200)
      let before = try await app.contents()
      expectSuperseded(try await answer(ben, id, friday), by: "declined", 0)
      #expect(try await app.contents() == before)
      // The user has seen both, and decides.
      let decided = try await answer(ben, id, #"{"status": "going", "ifStatus": "declined", "ifPlusOnes": 0}"#)
      #expect(decided.status == 200 && decided.json["myStatus"].string == "going")
      // Without a basis, the last answer wins, as does one with nulls.
      #expect(try await answer(ben, id, #"{"status": "maybe"}"#).status == 200)
      let nulls = #"{"status": "declined", "ifStatus": null, "ifPlusOnes": null}"#
      #expect(try await answer(ben, id, nulls).json["myStatus"].string == "declined")
    }
  }

  @Test func `plus-ones are a part of the answer`() async throws {
    try await run { _, _, ben, _, id in
      #expect(try await answer(ben, id, #"{"status": "going", "plusOnes": 2}"#).status == 200)
      let older = #"{"status": "maybe", "ifStatus": "going", "ifPlusOnes": 0}"#
      expectSuperseded(try await answer(ben, id, older), by: "going", 2)
      let fewer = #"{"status": "going", "plusOnes": 1, "ifStatus": "going", "ifPlusOnes": 0}"#
      expectSuperseded(try await answer(ben, id, fewer), by: "going", 2)
      #expect(try await answer(ben, id, #"{"status": "maybe", "ifStatus": "going", "ifPlusOnes": 2}"#).status == 200)
      // One of the two can be given alone.
      expectSuperseded(try await answer(ben, id, #"{"status": "going", "ifPlusOnes": 0}"#), by: "maybe", 2)
      #expect(try await answer(ben, id, #"{"status": "going", "ifPlusOnes": 2}"#).status == 200)
    }
  }

  @Test func `the current answer is repeated, whatever it is based on`() async throws {
    try await run(capacity: 1) { app, ana, ben, cleo, id in
      let going = #"{"status": "going", "plusOnes": 0, "ifStatus": "invited", "ifPlusOnes": 0}"#
      for (phone, status) in [(ben, "going"), (cleo, "waitlisted")] {
        for _ in 1...3 {
          let answered = try await answer(phone, id, going)
          #expect(answered.status == 200 && answered.json["myStatus"].string == status, "\(answered.body)")
        }
      }
      #expect(
        try await app.takeNotifications().count { $0.type == "invitation-answered" || $0.type == "guest-answered" } == 2
      )
      // At any age, also after the deadline.
      try await app.database.execute("UPDATE events SET answer_by = now() - interval '1 hour'")
      #expect(try await answer(ben, id, going).status == 200)
      #expect(try await answer(ben, id, #"{"status": "maybe", "ifStatus": "going"}"#).problem == "answers-closed")
      expectSuperseded(try await answer(ben, id, #"{"status": "maybe", "ifStatus": "invited"}"#), by: "going", 0)
      try await ana.cancelEvent(id)
      #expect(try await answer(ben, id, going).problem == "event-cancelled")
    }
  }

  @Test(arguments: ["going", "declined", "maybe"])
  func `a place that became free counts as a newer answer only before "maybe"`(_ wanted: String) async throws {
    try await run(capacity: 1) { _, _, ben, cleo, id in
      #expect(try await answer(ben, id, #"{"status": "going"}"#).status == 200)
      #expect(try await answer(cleo, id, #"{"status": "going"}"#).json["myStatus"].string == "waitlisted")
      #expect(try await answer(ben, id, #"{"status": "declined"}"#).status == 200)
      #expect(try await cleo.get("events/\(id)")["myStatus"].string == "going")
      let late = try await answer(
        cleo, id, #"{"status": "\#(wanted)", "ifStatus": "waitlisted", "ifPlusOnes": 0}"#)
      if wanted == "maybe" {
        expectSuperseded(late, by: "going", 0)
      } else {
        #expect(late.status == 200 && late.json["myStatus"].string == wanted, "\(late.body)")
      }
    }
  }

  @Test func `a place on the waiting list is a newer answer than "going"`() async throws {
    try await run(capacity: 1) { _, _, ben, cleo, id in
      #expect(try await answer(cleo, id, #"{"status": "going", "ifStatus": "invited"}"#).status == 200)
      // In a browser.
      #expect(try await answer(cleo, id, #"{"status": "declined"}"#).status == 200)
      #expect(try await answer(ben, id, #"{"status": "going"}"#).status == 200)
      #expect(try await answer(cleo, id, #"{"status": "going"}"#).json["myStatus"].string == "waitlisted")
      for status in ["maybe", "declined"] {
        let old = try await answer(cleo, id, #"{"status": "\#(status)", "ifStatus": "going", "ifPlusOnes": 0}"#)
        expectSuperseded(old, by: "waitlisted", 0)
      }
      #expect(try await answer(cleo, id, #"{"status": "maybe", "ifStatus": "waitlisted"}"#).status == 200)
    }
  }

  @Test func `a host sets an answer on what the host has seen`() async throws {
    try await run { app, ana, ben, _, id in
      func set(_ body: String) async throws -> APIResponse {
        try await ana.send("PUT", "events/\(id)/invitations/\(ben.id)", body)
      }
      #expect(try await answer(ben, id, #"{"status": "declined"}"#).status == 200)
      let before = try await app.contents()
      expectSuperseded(
        try await set(#"{"status": "going", "ifStatus": "invited", "ifPlusOnes": 0}"#), by: "declined", 0)
      #expect(try await set(#"{"status": "declined", "ifStatus": "invited"}"#).status == 200)
      #expect(try await app.contents() == before)
      #expect(try await set(#"{"status": "going", "ifStatus": "declined", "ifPlusOnes": 0}"#).status == 200)
      // An answer that a host has set is newer than what the guest saw.
      expectSuperseded(try await answer(ben, id, #"{"status": "maybe", "ifStatus": "declined"}"#), by: "going", 0)
    }
  }

  @Test func `of two answers that are based on one and run at once, one stands`() async throws {
    try await TestApp.run(["MUSTER_RATE_LIMITS": "off"], queuesWrites: false) { app in
      let (ana, ben) = try await app.friends("ana", "ben")
      for _ in 1...10 {
        let id = try await ana.createEvent(inviting: [ben])["id"].string ?? ""
        let statuses = try await app.race(2) { index in
          try await ben.send(
            "PUT", "events/\(id)/invitations/me",
            #"{"status": "\#(index == 0 ? "going" : "declined")", "ifStatus": "invited", "ifPlusOnes": 0}"#)
        }
        #expect(statuses == [200: 1, 409: 1])
      }
      try await app.takeNotifications()
    }
  }

  @Test func `a basis must be a known state and a number of people`() async throws {
    try await run { _, ana, ben, _, id in
      for body in [
        #"{"status": "going", "ifStatus": "creator", "ifPlusOnes": 11}"#,
        #"{"status": "going", "ifStatus": 5, "ifPlusOnes": "x"}"#,
      ] {
        for (phone, guest) in [(ben, "me"), (ana, ben.id)] {
          let refused = try await phone.send("PUT", "events/\(id)/invitations/\(guest)", body)
          #expect(refused.badFields.contains("ifStatus"), "\(refused.body)")
        }
      }
    }
  }
}
