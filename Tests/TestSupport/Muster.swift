import Foundation

/// The program `muster`, as tests run it.
public enum Muster {
  // All programs of a test run have these keys.
  public static let accessTokenKeys = newKey()
  public static let refreshTokenKeys = newKey()
  public static let addressKeys = newKey()

  /// A new key with a name of its own, as `muster keys` prints it.
  public static func newKey() -> String {
    let bytes = (0..<32).map { _ in UInt8.random(in: 0...255) }
    return "k\(UInt32.random(in: 0...UInt32.max)):\(Data(bytes).base64EncodedString())"
  }

  /// Hashing is cheap, tests send as fast as they can, and everything else is as in production.
  ///
  /// - Parameter databaseURL: the owner's URL. The program gets that of the limited role.
  public static func environment(_ databaseURL: String) -> [String: String] {
    [
      "DATABASE_URL": TestCluster.limited(databaseURL), "MUSTER_ACCESS_TOKEN_KEYS": accessTokenKeys,
      "MUSTER_REFRESH_TOKEN_KEYS": refreshTokenKeys, "MUSTER_ADDRESS_KEYS": addressKeys,
      "MUSTER_SCRYPT": "ln=4,r=8,p=1", "MUSTER_RATE_LIMITS": "off",
      // Many processes run at once, and would compete for the port.
      "MUSTER_METRICS_LISTEN": "off", "MUSTER_PUBLIC_URL": "http://muster.test",
      // No test contacts the real providers, whatever it configures.
      "MUSTER_APPLE_KEYS_URL": "https://127.0.0.1:9/keys", "MUSTER_GOOGLE_KEYS_URL": "https://127.0.0.1:9/keys",
    ]
  }

  /// The same for `muster migrate`, which runs as the owner and grants the rights of the other programs.
  public static func ownersEnvironment(_ databaseURL: String) -> [String: String] {
    environment(databaseURL).merging([
      "DATABASE_URL": databaseURL, "MUSTER_DATABASE_ROLE": TestCluster.programRole,
    ]) { $1 }
  }

  /// Runs the program, and waits for its end.
  ///
  /// - Throws: if it fails
  public static func run(_ arguments: String..., environment: [String: String]) async throws {
    let program = try await Program(Program.path("muster"), arguments, environment: environment, in: "/tmp")
    let status = try await program.exitStatus(within: .seconds(120))
    guard status == 0 else { throw Unexpected("muster \(arguments): \(program.standardError)") }
  }

  /// - Parameter port: 0 for a free one.
  public static func serve(port: Int = 0, environment: [String: String]) async throws -> Program {
    try await Program(
      Program.path("muster"), ["serve", "--port", "\(port)"], environment: environment, in: "/tmp")
  }
}

extension Program {
  /// Waits until a `muster serve` on plain HTTP listens, and returns its address.
  public func address() async throws -> URL {
    try await waitForOutput(#""message":"listening""#)
    let pattern = /"address":"(http:\/\/127\.0\.0\.1:\d+)","level":"info","message":"listening"/
    guard let found = standardError.firstMatch(of: pattern), let address = URL(string: String(found.1)) else {
      throw Unexpected(standardError)
    }
    return address
  }
}
