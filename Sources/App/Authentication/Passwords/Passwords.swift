import Crypto
import CryptoExtras
import Foundation

/// Hashes passwords with scrypt, on threads of its own: a few at once, and only so many waiting.
public final class Passwords: Sendable {
  /// scrypt's cost: 2^logN rounds of blocks of 128 r bytes, p times.
  public struct Cost: Equatable, Sendable {
    public var logN: Int
    public var r: Int
    public var p: Int

    /// OWASP's recommendation: some 170 ms and 32 MiB.
    public static let recommended = Cost(logN: 15, r: 8, p: 3)

    /// As in `ln=15,r=8,p=3`; nil if malformed or beyond reason.
    public init?(_ text: some StringProtocol) {
      let parts = text.split(separator: ",").map { $0.split(separator: "=") }
      guard parts.count == 3, parts.allSatisfy({ $0.count == 2 }), parts.map({ $0[0] }) == ["ln", "r", "p"],
        let logN = Int(parts[0][1]), let r = Int(parts[1][1]), let p = Int(parts[2][1]),
        (1...20).contains(logN), (1...32).contains(r), (1...16).contains(p),
        // scrypt's own rule, and a limit to what one login may take: 256 MiB.
        logN < 16 * r, 128 * r << logN <= 256 << 20
      else { return nil }
      self.init(logN: logN, r: r, p: p)
    }

    public init(logN: Int, r: Int, p: Int) {
      self.logN = logN
      self.r = r
      self.p = p
    }

    var text: String { "ln=\(logN),r=\(r),p=\(p)" }

    /// What it costs, in blocks.
    var work: Int { p * r << logN }

    /// About what one hash takes: it goes with the number of blocks, some five million a second.
    var seconds: Double { Double(work) / 5e6 }
  }

  private let cost: Cost
  private let threads: HashingThreads
  /// Checked where there is nothing to check against, by the same steps.
  private let decoy: String

  public init(cost: Cost) {
    self.cost = cost
    threads = HashingThreads(expecting: cost.seconds)
    decoy = Self.text(cost, salt: Array(repeating: 0, count: 16), key: Array(repeating: 0, count: 32))
  }

  /// Throws what ``hash(_:)`` and ``verify(_:against:)`` would if too many wait already: for whoever has other work to
  /// do first, which would be in vain.
  func admit() throws {
    if threads.isFull { throw AppError.busy }
  }

  /// - Returns: a PHC-like string that holds the parameters and the salt: `$scrypt$ln=15,r=8,p=3$salt$hash`.
  func hash(_ password: String) async throws -> String {
    // From the generator that keys are made by.
    let salt = SymmetricKey(size: .bits128).withUnsafeBytes { Array($0) }
    let key = try await derive(password, salt: salt, cost)
    return Self.text(cost, salt: salt, key: key)
  }

  private static func text(_ cost: Cost, salt: [UInt8], key: [UInt8]) -> String {
    "$scrypt$\(cost.text)$\(Data(salt).base64EncodedString())$\(Data(key).base64EncodedString())"
  }

  /// Whether a stored hash was made at a lower cost than this process's.
  func needsUpgrade(_ stored: String) -> Bool {
    let parts = stored.split(separator: "$")
    return parts.count != 4 || (Cost(parts[1])?.work ?? 0) < cost.work
  }

  /// Refusing takes the same time whether there is something to compare with or not (`stored` is nil where there is no
  /// account, or none with a password), as long as no stored hash has a higher cost than this process's.
  func verify(_ password: String, against stored: String?) async throws -> Bool {
    let parts = (stored ?? decoy).split(separator: "$")
    guard parts.count == 4, parts[0] == "scrypt", let cost = Cost(parts[1]),
      let salt = Data(base64Encoded: String(parts[2])), let expected = Data(base64Encoded: String(parts[3]))
    else { return try await verify(password, against: decoy) }
    let key = try await derive(password, salt: Array(salt), cost)
    // Compares in constant time.
    if SymmetricKey(data: key) == SymmetricKey(data: expected) { return stored != nil }
    // What a hash from a cheaper time saved: a 2^n and all powers from it on make the next.
    if cost.r == self.cost.r, cost.p == self.cost.p, cost.logN < self.cost.logN {
      for logN in cost.logN..<self.cost.logN {
        _ = try await derive(password, salt: Array(salt), Cost(logN: logN, r: cost.r, p: cost.p))
      }
    }
    return false
  }

  private func derive(_ password: String, salt: [UInt8], _ cost: Cost) async throws -> [UInt8] {
    // The same text may be typed in several Unicode forms.
    let bytes = Array(password.precomposedStringWithCanonicalMapping.utf8)
    return try await threads.run {
      let key = try KDF.Scrypt.deriveKey(
        from: bytes, salt: salt, outputByteCount: 32, rounds: 1 << cost.logN, blockSize: cost.r, parallelism: cost.p)
      return key.withUnsafeBytes { Array($0) }
    }
  }
}
