import Foundation
import Testing

@testable import MusterClient

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
    let outcome = Outcome(.json(#"{"type":"brand-new","status":418}"#, status: 451))
    #expect(outcome.error == .refused(Problem(type: "brand-new", title: "", status: 451)))
  }

  @Test(arguments: [200, 302, 401, 403, 500, 502, 511])
  func `a page of another server is no response of Muster`(status: Int) throws {
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
