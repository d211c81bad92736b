import Foundation
import Postgres
import TestSupport
import Testing
@testable import App

@Suite struct FieldsTests {
  private struct Spot: Equatable {
    var name = ""
    var latitude: Double?
  }

  private static var spot: Fields.Rule<Spot> {
    .object(Spot()) {
      Spot(name: $0.required("name", .text(1...5)), latitude: $0.optional("latitude", .number(-90...90)))
    }
  }

  /// - Returns: the names of the invalid fields, in the order of the errors.
  private func badFields(_ text: String, _ body: (inout Fields) -> Void) throws -> [String] {
    let json = try JSON(parsing: text.utf8)
    do {
      try Fields.read(json, body)
      return []
    } catch let error as AppError {
      #expect(error.kind == .invalid)
      #expect(error.slug == "invalid-fields")
      for field in error.fields { #expect(!field.message.isEmpty && error.message.contains(field.field)) }
      return error.fields.map(\.field)
    }
  }

  @Test func `a deeply nested field is reported by its whole path`() throws {
    let inner: Fields.Rule<Spot> = .object(Spot()) { fields in
      _ = fields.optional("list", .list(of: Self.spot, atMost: 2))
      return fields.optional("spot", Self.spot) ?? Spot()
    }
    let bad = try badFields(#"{"outer": {"spot": {"name": 5}, "list": [{"name": "ok"}, {}]}}"#) {
      _ = $0.required("outer", inner)
    }
    #expect(bad == ["outer.list[1].name", "outer.spot.name"])
  }

  @Test func `in an edit, an absent field stays, and null clears optional fields and is refused for others`() throws {
    func edit(_ text: String) throws -> (title: String, note: String?) {
      try Fields.read(try JSON(parsing: text.utf8)) {
        (
          $0.edit("title", .text(1...5)).applied(to: "old"), $0.clearableEdit("note", .text(0...5)).applied(to: "old")
        )
      }
    }
    #expect(try edit("{}") == ("old", "old"))
    #expect(try edit(#"{"title": "new", "note": null}"#) == ("new", nil))
    #expect(try edit(#"{"note": "new"}"#) == ("old", "new"))
    #expect(
      try badFields(#"{"title": null, "note": 5}"#) {
        _ = $0.edit("title", .text(1...5))
        _ = $0.clearableEdit("note", .text(0...5))
      } == ["title", "note"])
  }

  @Test func `a generated reader has the limits of the document, and names bad members in its order`() throws {
    let bodies: [(text: String, read: (inout Fields) -> Void, bad: [String])] = [
      (
        #"{"device": "", "displayName": 5, "password": "short", "email": "ana", "username": "a!"}"#,
        { _ = Body.Registration(&$0) },
        [
          "username must be 3 to 30 characters long", "email must be an e-mail address",
          "password must be 8 to 256 characters long", "displayName must be a string, not a number",
          "device must be 1 to 100 characters long",
        ]
      ),
      (
        #"{"rotateSecret": 1, "platform": "pager", "topic": "a b", "environment": "beta"}"#,
        { _ = Body.DeviceRegistration(&$0) },
        [
          "platform must be one of ios, android, webhook, log", "token is required",
          "environment must be one of production, sandbox", "topic must be an app's id, like com.example.app",
          "rotateSecret must be true or false, not a number",
        ]
      ),
    ]
    for (text, read, bad) in bodies {
      let error = #expect(throws: AppError.self) { try Fields.read(try JSON(parsing: text.utf8), read) }
      #expect(error?.fields.map { "\($0.field) \($0.message)" } == bad)
    }
  }

  @Test func `what a body may lack has its default, or tells null from absent`() throws {
    func copy(_ members: String) throws -> Body.EventCopy {
      try Fields.read(try JSON(parsing: #"{"startTime": "2030-05-01T18:00:00Z"\#(members)}"#.utf8), Body.EventCopy.init)
    }
    let plain = try copy("")
    #expect(!plain.invite)
    guard case .keep = plain.endTime else { throw Unexpected("\(plain.endTime)") }
    let cleared = try copy(#", "endTime": null, "invite": true"#)
    #expect(cleared.invite)
    guard case .set(nil) = cleared.endTime else { throw Unexpected("\(cleared.endTime)") }
  }

  @Test func `text is trimmed, composed and counted in characters`() throws {
    let rule = Fields.Rule<String>.text(1...3)
    #expect(try rule.read(.string(" \n abc\u{3000}\t")) == "abc")
    #expect(try Array(rule.read(.string("e\u{301}")).unicodeScalars) == ["é"])
    #expect(try rule.read(.string("😀😀😀")) == "😀😀😀")
    for bad in ["", " ", "\n\u{2003}", "abcd", "😀😀😀😀"] {
      #expect(throws: Fields.Broken.self, "\(bad)") { try rule.read(.string(bad)) }
    }
  }

  @Test func `times are cut to the second, and range from 1970 to 9999`() throws {
    func read(_ text: String) throws -> String {
      try Fields.Rule<Timestamp>.time.read(.string(text)).rfc3339(microseconds: true)
    }
    #expect(try read("2026-05-01T18:00:00.999999+02:00") == "2026-05-01T16:00:00.000000Z")
    #expect(try read("1970-01-01T00:00:00Z") == "1970-01-01T00:00:00.000000Z")
    #expect(try read("9999-12-31T23:59:59Z") == "9999-12-31T23:59:59.000000Z")
    #expect(throws: Fields.Broken.self) { try read("1969-12-31T23:59:59Z") }
    #expect(throws: Fields.Broken.self) { try read("0000-01-01T00:00:00Z") }
    // In UTC this is the year 10000, which no parser accepts.
    #expect(throws: Fields.Broken.self) { try read("9999-12-31T23:59:59-23:59") }
  }
}
