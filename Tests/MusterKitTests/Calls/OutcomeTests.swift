import Foundation
import Testing

@testable import MusterKit

@Suite struct OutcomeTests {
  @Test func `a problem has its slug, its fields and its wait`() throws {
    let body = """
      {"type":"invalid-fields","title":"Unprocessable Content","status":422,"detail":"d","requestId":"5f3a","new":[1],
       "errors":[{"field":"title","code":"wrong-length","message":"m"}]}
      """
    let headers = ["content-type": "application/problem+json", "retry-after": "5"]
    let outcome = Outcome(TransportResponse(status: 422, headers: headers, body: Data(body.utf8)))
    #expect(
      outcome.error
        == .refused(
          Problem(
            type: .invalidFields, title: "Unprocessable Content", status: 422, detail: "d", requestId: "5f3a",
            errors: [FieldProblem(field: "title", code: "wrong-length", message: "m")], retryAfter: 5)))
  }

  @Test func `an unknown problem is known by its status`() {
    let headers = ["content-type": "Application/Problem+JSON; charset=utf-8"]
    let body = Data(#"{"type":"brand-new","status":418}"#.utf8)
    let outcome = Outcome(TransportResponse(status: 451, headers: headers, body: body))
    #expect(outcome.error == .refused(Problem(type: "brand-new", title: "", status: 451)))
  }

  @Test(arguments: [
    ("application/json", #"{"type":"event-cancelled","title":"t","status":409}"#),
    ("application/problem+json", #"{"type":"about:blank","title":"t","status":409}"#),
    ("application/problem+json", #"{"type":"https://proxy.example/blocked","title":"t","status":409}"#),
    ("application/problem+json", #"{"type":"","status":409}"#), ("application/problem+json", #"{"status":409}"#),
    ("application/problem+json", "<html>"), ("text/plain", "Forbidden"), ("text/html", ""),
  ])
  func `only a problem with a slug is a refusal`(type: String, body: String) {
    for status in [403, 404, 409, 500] {
      let response = TransportResponse(status: status, headers: ["content-type": type], body: Data(body.utf8))
      guard case .unexpectedResponse(status, _) = Outcome(response).error else {
        Issue.record("\(status) \(type) \(body)")
        continue
      }
    }
  }

  @Test func `a success is what the call expects`() {
    let json = TransportResponse.json("{}")
    let calendar = TransportResponse(status: 200, headers: ["content-type": "text/calendar; charset=utf-8"])
    let bare = TransportResponse(status: 200)
    #expect(Outcome(json).error == nil && Outcome(.json("{}", status: 201)).error == nil)
    #expect(Outcome(calendar, expecting: .body(type: "text/calendar")).error == nil)
    #expect(Outcome(.noContent, expecting: .nothing).error == nil)
    for (response, expected) in [
      (.noContent, .json), (bare, .json), (bare, .nothing), (json, .nothing), (.html(status: 200), .nothing),
      (json, .body(type: "text/calendar")), (.html(status: 200), .json),
    ] as [(TransportResponse, ExpectedResponse)] {
      #expect(Outcome(response, expecting: expected).error?.isTemporary == true, "\(response) \(expected)")
    }
  }

  @Test(arguments: [("-5", nil), ("x", nil), ("0", 0), ("7", 7), ("99999999999", 2_592_000)])
  func `a wait is a number of seconds that makes sense`(text: String, seconds: Int?) {
    #expect(Outcome(.html(status: 503, headers: ["retry-after": text])).retryAfter == seconds)
  }

  @Test(arguments: [200, 302, 401, 403, 500, 502, 511])
  func `a page of another server is not a response of Muster`(status: Int) throws {
    let outcome = Outcome(.html(status: status))
    guard case .unexpectedResponse(status, let detail) = outcome.error else {
      Issue.record("\(outcome)")
      return
    }
    #expect(detail.contains("<html>no</html>"))
  }

  @Test func `a redirect says where to`() {
    let outcome = Outcome(TransportResponse(status: 301, headers: ["location": "https://other.example/"]))
    #expect(outcome.error == .unexpectedResponse(status: 301, detail: "It redirects to https://other.example/."))
  }

  @Test func `errors that may pass are temporary`() {
    #expect(MusterError.unreachable("").isTemporary)
    #expect(MusterError.tokensUnavailable("").isTemporary)
    #expect(!MusterError.loggedOut.isTemporary)
    #expect(Outcome(.problem(.unknownOutcome, status: 503)).error?.isTemporary == true)
    #expect(Outcome(.problem(.requestRunning, status: 409)).error?.isTemporary == true)
    #expect(Outcome(.problem(.eventCancelled, status: 409)).error?.isTemporary == false)
    #expect(Outcome(.problem(.eventNotFound, status: 404)).error?.isTemporary == false)
  }
}
