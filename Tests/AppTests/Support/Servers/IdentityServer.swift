import Crypto
import CryptoExtras
import Foundation
import HTTPServer
import Synchronization
import Testing
import TestSupport

@testable import App

/// An HTTPS server on this machine that acts as Apple and Google. It makes tokens, publishes keys, and fails on demand.
final class IdentityServer: Sendable {
  struct Behaviour: Sendable {
    /// The ids of the published keys.
    var published = ["first"]
    var status = 200
    var headers: HTTPFields = [.cacheControl: "public, max-age=3600"]
    var delay = Duration.zero
    /// Sent instead of the keys.
    var body: String?
    /// The status of Apple's token and revocation endpoints.
    var grantStatus = 200
    /// The user whom Apple's token names for an authorization code. If nil, the code itself names the user.
    var codeOf: String?
  }

  private struct State: Sendable {
    var port = 0
    var behaviour = Behaviour()
    var fetches = 0
    var forms: [[String: String]] = []
  }

  /// Made once per test run, because it takes a while.
  struct Material: Sendable {
    let certificate: String
    let certificateKey: String
    let keys: [String: _RSA.Signing.PrivateKey]
  }

  static let clientID = "com.example.muster"
  /// A name in the certificate. No name server knows it.
  static let certifiedName = "hooks.example"
  static let appleKey = P256.Signing.PrivateKey()

  private let material: Material
  private let state = Mutex(State())
  /// The certificate that a client must trust.
  let certificateFile: String

  private init(_ material: Material) throws {
    self.material = material
    certificateFile =
      FileManager.default.temporaryDirectory.appending(path: "muster-identity-\(UUID().uuidString).pem").path
    try material.certificate.write(toFile: certificateFile, atomically: true, encoding: .utf8)
  }

  static let prepared = Task { () async throws -> Material in
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-certificate-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let (certificate, key) = (folder + "/certificate.pem", folder + "/key.pem")
    let openssl = try await Program(
      "/usr/bin/env",
      [
        "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
        "-addext", "subjectAltName=DNS:localhost,DNS:\(IdentityServer.certifiedName)", "-keyout", key,
        "-out",
        certificate,
      ])
    guard try await openssl.exitStatus() == 0 else { throw Unexpected("openssl: \(openssl.standardError)") }
    var keys: [String: _RSA.Signing.PrivateKey] = [:]
    for id in ["first", "second"] { keys[id] = try _RSA.Signing.PrivateKey(keySize: .bits2048) }
    return Material(
      certificate: try String(contentsOfFile: certificate, encoding: .utf8),
      certificateKey: try String(contentsOfFile: key, encoding: .utf8), keys: keys)
  }

  /// Runs `body` while the server is running.
  static func run(_ body: @escaping @Sendable (IdentityServer) async throws -> Void) async throws {
    let material = try await prepared.value
    let identity = try IdentityServer(material)
    defer { try? FileManager.default.removeItem(atPath: identity.certificateFile) }
    let certificate = try identity.certificate()
    try await serving(certificate: certificate, { request, _ in try await identity.respond(to: request) }) { port in
      identity.state.withLock { $0.port = port }
      try await body(identity)
    }
  }

  // MARK: For tests

  var url: String { "https://localhost:\(state.withLock { $0.port })" }

  /// The number of requests for the keys.
  var fetches: Int { state.withLock { $0.fetches } }

  func behave(_ change: @Sendable (inout Behaviour) -> Void) {
    state.withLock { change(&$0.behaviour) }
  }

  /// The forms that were sent to Apple's token and revocation endpoints since the last call.
  func takeForms() -> [[String: String]] {
    state.withLock { state in
      defer { state.forms = [] }
      return state.forms
    }
  }

  /// The environment of a service that uses this server for logins.
  var environment: [String: String] {
    [
      "MUSTER_APPLE_CLIENT_IDS": "\(Self.clientID), \(Self.clientID).web", "MUSTER_APPLE_KEYS_URL": "\(url)/keys",
      "MUSTER_GOOGLE_CLIENT_IDS": Self.clientID, "MUSTER_GOOGLE_KEYS_URL": "\(url)/keys",
      "MUSTER_APPLE_TEAM_ID": "TEAM", "MUSTER_APPLE_KEY_ID": "KEY",
      "MUSTER_APPLE_PRIVATE_KEY": Self.appleKey.pemRepresentation.replacing("\n", with: "\\n"),
      "MUSTER_APPLE_TOKEN_URL": "\(url)/token", "MUSTER_APPLE_REVOKE_URL": "\(url)/revoke",
      "MUSTER_TRUSTED_CERTIFICATES": certificateFile,
    ]
  }

  /// The claims of an email address, verified or not.
  static func email(_ address: String, isVerified: Bool = true) -> [String: String] {
    ["email": "\"\(address)\"", "email_verified": "\(isVerified)"]
  }

  /// A token of the provider, with some of its claims replaced. Values are JSON, and an empty value removes the claim.
  func token(
    _ provider: IdentityProvider.Name = .google, _ subject: String, _ claims: [String: String] = [:],
    key: String = "first", header: String? = nil
  ) throws -> String {
    let signed = Self.unsigned(provider, subject, claims, header: header ?? #"{"alg":"RS256","kid":"\#(key)"}"#)
    let signature = try #require(material.keys[key]).signature(for: Data(signed.utf8), padding: .insecurePKCS1v1_5)
    return "\(signed).\(signature.rawRepresentation.base64URL)"
  }

  /// A notification that Apple's server sends.
  ///
  /// - Parameters:
  ///   - time: of the event, in the unit that Apple sends: milliseconds.
  ///   - members: of the event, in JSON.
  ///   - claims: of the token, instead of the usual ones.
  func notification(
    _ type: String, of subject: String, at time: Int? = nil, _ members: [String: String] = [:],
    claims: [String: String] = [:], key: String = "first", header: String? = nil
  ) throws -> String {
    let time = time ?? Int(Date().timeIntervalSince1970 * 1000)
    let event = ["type": "\"\(type)\"", "sub": "\"\(subject)\"", "event_time": "\(time)"].merging(members) { $1 }
    let json = event.filter { !$0.value.isEmpty }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
    let escaped = "{\(json)}".replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
    let own = ["sub": "", "jti": "\"\(UUID())\"", "events": "\"\(escaped)\""].merging(claims) { $1 }
    return try token(.apple, subject, own, key: key, header: header)
  }

  /// The first two parts of a token.
  static func unsigned(
    _ provider: IdentityProvider.Name = .google, _ subject: String, _ claims: [String: String] = [:], header: String
  ) -> String {
    let now = Int(Date().timeIntervalSince1970)
    let issuer = provider == .apple ? "https://appleid.apple.com" : "https://accounts.google.com"
    let members = [
      "iss": "\"\(issuer)\"", "aud": "\"\(clientID)\"", "sub": "\"\(subject)\"", "iat": "\(now)", "exp": "\(now + 600)",
    ].merging(claims) { $1 }
    let payload = members.filter { !$0.value.isEmpty }.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",")
    return "\(Data(header.utf8).base64URL).\(Data("{\(payload)}".utf8).base64URL)"
  }

  func publicKey(_ id: String = "first") throws -> _RSA.Signing.PublicKey {
    try #require(material.keys[id]).publicKey
  }

  private func certificate() throws -> ServerCertificate {
    let keyFile = certificateFile + ".key"
    try material.certificateKey.write(toFile: keyFile, atomically: true, encoding: .utf8)
    defer { try? FileManager.default.removeItem(atPath: keyFile) }
    return try ServerCertificate(
      certificateFile: certificateFile, keyFile: keyFile, names: .init(certificate: "certificate", key: "key"))
  }

  // MARK: Responses

  private func respond(to request: Request) async throws -> Response {
    switch "\(request.method) \(request.uri.path)" {
    case "GET /keys": try await keys()
    case "GET /elsewhere": try await keys(isElsewhere: true)
    case "POST /token": try await token(for: request)
    case "POST /revoke": try await revoke(request)
    default: Response(status: .notFound)
    }
  }

  private func keys(isElsewhere: Bool = false) async throws -> Response {
    let behaviour = state.withLock { state in
      state.fetches += 1
      return state.behaviour
    }
    if behaviour.delay > .zero { try await Task.sleep(for: behaviour.delay) }
    // A key of an unknown type, which clients must ignore.
    var keys = [#"{"kty": "EC", "crv": "P-9000", "kid": "odd", "x": "AA", "y": "AA"}"#]
    for id in behaviour.published {
      let primitives = try publicKey(id).getKeyPrimitives()
      let (modulus, exponent) = (primitives.modulus.base64URL, primitives.publicExponent.base64URL)
      keys.append(
        #"{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "\#(id)", "n": "\#(modulus)", "e": "\#(exponent)"}"#)
    }
    let status = isElsewhere ? 200 : behaviour.status
    return Self.response(
      status, behaviour.body ?? #"{"keys": [\#(keys.joined(separator: ","))]}"#, headers: behaviour.headers)
  }

  private func token(for request: Request) async throws -> Response {
    let form = try await keep(request)
    let (status, codeOf) = state.withLock { ($0.behaviour.grantStatus, $0.behaviour.codeOf) }
    guard status == 200 else { return Self.response(status, #"{"error": "invalid_grant"}"#) }
    let code = form["code"] ?? ""
    let idToken = try token(.apple, codeOf ?? String(code.dropFirst("code-of-".count)))
    return Self.response(200, #"{"access_token": "x", "refresh_token": "refresh-\#(code)", "id_token": "\#(idToken)"}"#)
  }

  private func revoke(_ request: Request) async throws -> Response {
    _ = try await keep(request)
    let status = state.withLock { $0.behaviour.grantStatus }
    return Self.response(status, status == 200 ? "" : #"{"error": "invalid_client"}"#)
  }

  private func keep(_ request: Request) async throws -> [String: String] {
    let body = String(buffer: try #require(try await request.body.collect(upTo: 64 << 10)))
    // The parser of URLs leaves a plus sign as it is.
    let items = URLComponents(string: "?" + body.replacing("+", with: "%20"))?.queryItems ?? []
    let form = Dictionary(uniqueKeysWithValues: items.map { ($0.name, $0.value ?? "") })
    state.withLock { $0.forms.append(form) }
    return form
  }

  private static func response(_ status: Int, _ body: String, headers: HTTPFields = [:]) -> Response {
    Response(
      status: HTTPResponse.Status(code: status), headers: headers,
      body: ResponseBody(ByteBuffer(string: body)))
  }
}

extension TestApp {
  /// - Parameter more: further members of the body.
  func signIn(
    _ provider: IdentityProvider.Name = .google, _ token: String, _ more: [String: String] = [:]
  ) async throws -> APIResponse {
    try await send("POST", "auth/\(provider.rawValue)", body: Self.body(token, more))
  }

  fileprivate static func body(_ token: String, _ more: [String: String]) -> String {
    let members = more.merging(["idToken": token]) { $1 }.map { "\"\($0.key)\": \"\($0.value)\"" }
    return "{\(members.joined(separator: ", "))}"
  }

  /// Runs the service together with the providers for its logins.
  static func runWithProviders(
    _ environment: [String: String] = [:], _ body: @escaping @Sendable (TestApp, IdentityServer) async throws -> Void
  ) async throws {
    try await IdentityServer.run { identity in
      try await TestApp.run(identity.environment.merging(environment) { $1 }) { try await body($0, identity) }
    }
  }
}

extension Phone {
  func link(
    _ provider: IdentityProvider.Name = .google, _ token: String, _ more: [String: String] = [:]
  ) async throws -> APIResponse {
    let more = more.merging(["currentPassword": password]) { given, _ in given }
    return try await send("POST", "auth/\(provider.rawValue)/link", TestApp.body(token, more))
  }
}
