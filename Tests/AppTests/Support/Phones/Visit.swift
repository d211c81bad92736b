import AsyncHTTPClient
import Foundation
import NIOCore
import Postgres
import Testing

@testable import App

/// The browser of a person without the app, who has answered through a share link.
struct Visit: Sendable {
  let app: TestApp
  /// Of the visitor's own page.
  let token: String

  var id: Guest.ID { app.dependencies.visitorTokens.read(token)?.id ?? .new() }
  var path: String { "/g/\(token)" }

  func page() async throws -> APIResponse { try await app.send("GET", path) }

  /// Sends a form of the page.
  @discardableResult
  func act(
    _ act: String, _ fields: [String: String] = [:], expecting status: Int = 303,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    let response = try await app.submit(path, fields.merging(["do": act]) { $1 })
    #expect(response.status == status, "\(act): \(response.body)", sourceLocation: sourceLocation)
    return response
  }

  @discardableResult
  func answer(
    _ status: String, plusOnes: Int? = nil, expecting code: Int = 303, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> APIResponse {
    var fields = ["answer": status]
    if let plusOnes { fields["plusOnes"] = "\(plusOnes)" }
    return try await act("answer", fields, expecting: code, sourceLocation: sourceLocation)
  }

  /// The visitor's entry in the guest list, as a host sees it.
  func entry(at event: String, seenBy host: Phone) async throws -> JSON {
    let guests = try await host.get("events/\(event)/invitations?limit=100")["items"].array
    return guests.first { $0["id"].string == id.description } ?? .null
  }

  /// The visitor's state and number of plus-ones, in the database.
  var state: String {
    get async throws {
      try await app.value("SELECT status || ' ' || plus_ones FROM visitors WHERE id = \(id)") ?? "gone"
    }
  }
}

extension TestApp {
  /// The key of new visitors' tokens.
  var visitorKid: String { dependencies.visitorTokens.page.kid }

  /// Follows no redirects.
  private static let browser: HTTPClient = {
    var configuration = HTTPClient.Configuration.singletonConfiguration
    configuration.decompression = .disabled
    configuration.timeout.connect = .seconds(60)
    configuration.redirectConfiguration = .disallow
    configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 32
    return HTTPClient(configuration: configuration)
  }()

  /// Sends a form, as a browser does.
  ///
  /// - Parameter more: headers besides those of every form.
  func submit(
    _ path: String, _ fields: [String: String], headers more: [(String, String)] = []
  ) async throws -> APIResponse {
    let plain = CharacterSet.alphanumerics
    let body = fields.map { name, value in
      "\(name)=\(value.addingPercentEncoding(withAllowedCharacters: plain) ?? "")"
    }.joined(separator: "&")
    return try await Self.$client.withValue(Self.browser) {
      // Under the pages' `no-referrer`, browsers send this origin.
      try await send(
        "POST", path, body: body,
        headers: [("Content-Type", "application/x-www-form-urlencoded"), ("Origin", "null")] + more)
    }
  }

  /// The hidden token of a share link's form.
  func formToken(of link: String) async throws -> String {
    let page = try await send("GET", "/e/\(link)")
    let found = page.body.firstMatch(of: /name="form" value="([^"]+)"/)
    return String(try #require(found, "\(page.body)").output.1)
  }

  /// Answers through a share link.
  ///
  /// - Parameter address: the client's, behind a proxy of this machine.
  @discardableResult
  func visit(
    _ link: String, name: String = "Zoe", _ answer: String = "going", plusOnes: Int? = nil, email: String? = nil,
    from address: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Visit {
    var fields = ["form": try await formToken(of: link), "name": name, "answer": answer]
    if let plusOnes { fields["plusOnes"] = "\(plusOnes)" }
    if let email { fields["email"] = email }
    let response = try await submit(
      "/e/\(link)", fields, headers: address.map { [("X-Forwarded-For", $0)] } ?? [])
    #expect(response.status == 303, "\(response.body)", sourceLocation: sourceLocation)
    return Visit(app: self, token: try visitorToken(in: response))
  }

  /// The token that a redirect leads to.
  func visitorToken(in response: APIResponse) throws -> String {
    let location = try #require(response.header("Location"), "\(response.status) \(response.body)")
    #expect(location.hasPrefix("../g/"))
    return String(location.dropFirst(5))
  }

  /// Answers with an address, and confirms it with the link in the mail.
  func confirmedVisit(
    _ link: String, name: String = "Zoe", _ answer: String = "going", plusOnes: Int? = nil, email: String,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws -> Visit {
    let visit = try await visit(link, name: name, answer, plusOnes: plusOnes, email: email)
    let address = try EmailAddress(parsing: email).text
    let mail = try await takeMails().first { $0.type == "mail-visitor-confirm" && $0.to == address }
    let mailed = Visit(app: self, token: try #require(mail?.page, sourceLocation: sourceLocation))
    try await mailed.act("confirm", sourceLocation: sourceLocation)
    return visit
  }
}
