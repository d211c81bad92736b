import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// A form that is sent again with other values, as after the browser's Back.
@Suite struct RepeatedFormTests {
  @Test func `another answer in the same form is the new answer`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent("Swim", capacity: 3)["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer", "maxPlusOnes": 2}"#)
      var fields = ["form": try await app.formToken(of: link.token), "name": "Zoe", "answer": "going", "plusOnes": "1"]
      let first = try await app.submit("/e/\(link.token)", fields)
      let visit = Visit(app: app, token: try app.visitorToken(in: first))
      for (answer, plusOnes, state) in [
        ("declined", "1", "declined 1"), ("going", "2", "going 2"), ("going", "2", "going 2"),
        ("maybe", "0", "maybe 0"),
      ] {
        (fields["answer"], fields["plusOnes"]) = (answer, plusOnes)
        let again = try await app.submit("/e/\(link.token)", fields)
        #expect(again.status == 303 && again.header("Location") == first.header("Location"), "\(again.body)")
        #expect(try await visit.state == state)
      }
      #expect(try await app.value("SELECT count(*) FROM visitors") == 1)
      #expect(try await ana.get("events/\(event)/links/\(link.id)")["joined"].int == 1)
      try await app.expectConsistency()
      let tooMany = try await app.submit("/e/\(link.token)", fields.merging(["plusOnes": "3"]) { $1 })
      #expect(tooMany.status == 422 && tooMany.body.contains("The number of people"), "\(tooMany.body)")
      // The page says why an answer does not count.
      (fields["answer"], fields["plusOnes"]) = ("going", "2")
      try await app.visit(link.token, name: "Yan", plusOnes: 1)
      try await ana.perform(
        "PATCH", "events/\(event)", #"{"capacity": 2}"#, expecting: 200, sourceLocation: #_sourceLocation)
      let full = try await app.submit("/e/\(link.token)", fields)
      #expect(full.status == 422 && full.body.contains("no room"), "\(full.body)")
      #expect(try await visit.state == "maybe 0")
      _ = try await ana.send("DELETE", "events/\(event)")
      let late = try await app.submit("/e/\(link.token)", fields)
      #expect(late.status == 409 && late.body.contains("cancelled"), "\(late.body)")
      try await app.takeNotifications()
    }
  }

  @Test func `another name is another person, who gets a message and can send the form again`() async throws {
    try await TestApp.run { app in
      let ana = try await app.signUp("ana")
      let event = try await ana.createEvent("Swim")["id"].string ?? ""
      let link = try await ana.createLink(to: event, #"{"kind": "answer"}"#)
      var fields = ["form": try await app.formToken(of: link.token), "name": "Zoe", "answer": "going"]
      let first = try await app.submit("/e/\(link.token)", fields)
      let visit = Visit(app: app, token: try app.visitorToken(in: first))
      for (name, value) in [("name", "Yan"), ("email", "zoe@example.com")] {
        let changed = fields.merging([name: value, "answer": "declined"]) { $1 }
        let page = try await app.submit("/e/\(link.token)", changed)
        #expect(page.status == 422 && page.body.contains("This form was already sent"), "\(page.body)")
        #expect(page.body.contains(value))
        #expect(try await visit.state == "going 0")
      }
      let page = try await app.submit("/e/\(link.token)", fields.merging(["name": "Yan"]) { $1 })
      let token = try #require(page.body.firstMatch(of: /name="form" value="([^"]+)"/)?.output.1)
      (fields["form"], fields["name"]) = (String(token), "Yan")
      #expect(try await app.submit("/e/\(link.token)", fields).status == 303)
      #expect(try await app.value("SELECT count(*) FROM visitors") == 2)
      try await app.takeNotifications()
    }
  }
}
