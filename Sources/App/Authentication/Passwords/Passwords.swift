import Crypto
import CryptoExtras
import Foundation

/// Hashes passwords with scrypt on its own threads. Limits how many hashes run concurrently, and how many callers wait.
public final class Passwords: Sendable {
  /// The cost of scrypt: 2^logN rounds over blocks of 128 r bytes, p times.
  public struct Cost: Equatable, Sendable {
    public var logN: Int
    public var r: Int
    public var p: Int

    /// OWASP's recommendation: about 170 ms and 32 MiB.
    public static let recommended = Cost(logN: 15, r: 8, p: 3)

    /// Parses a text such as `ln=15,r=8,p=3`. Nil if it is malformed or unreasonable.
    public init?(_ text: some StringProtocol) {
      let parts = text.split(separator: ",").map { $0.split(separator: "=") }
      guard parts.count == 3, parts.allSatisfy({ $0.count == 2 }), parts.map({ $0[0] }) == ["ln", "r", "p"],
        let logN = Int(parts[0][1]), let r = Int(parts[1][1]), let p = Int(parts[2][1]),
        (1...20).contains(logN), (1...32).contains(r), (1...16).contains(p),
        // scrypt's own rule, and a memory limit for one login: 256 MiB.
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

    /// The cost in blocks.
    var work: Int { p * r << logN }

    /// The approximate duration of one hash, at five million blocks a second.
    var seconds: Double { Double(work) / 5e6 }
  }

  private let cost: Cost
  private let threads: HashingThreads
  /// A hash to check when there is no stored one, with the same steps.
  private let decoy: String

  public init(cost: Cost) {
    self.cost = cost
    threads = HashingThreads(expecting: cost.seconds)
    decoy = Self.text(cost, salt: Array(repeating: 0, count: 16), key: Array(repeating: 0, count: 32))
  }

  /// Throws the error of ``hash(_:)`` and ``verify(_:against:)`` if too many callers wait already. Call this before
  /// other work that would be wasted.
  func admit() throws {
    if threads.isFull { throw AppError.busy }
  }

  /// - Returns: a PHC-like string that holds the parameters and the salt: `$scrypt$ln=15,r=8,p=3$salt$hash`.
  func hash(_ password: String) async throws -> String {
    // The same generator makes keys.
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

  /// A failed check takes the same time with or without a stored hash, unless the stored hash has a higher cost than
  /// this process's. `stored` is nil if there is no account, or if the account has no password.
  func verify(_ password: String, against stored: String?) async throws -> Bool {
    let parts = (stored ?? decoy).split(separator: "$")
    guard parts.count == 4, parts[0] == "scrypt", let cost = Cost(parts[1]),
      let salt = Data(base64Encoded: String(parts[2])), let expected = Data(base64Encoded: String(parts[3]))
    else { return try await verify(password, against: decoy) }
    let key = try await derive(password, salt: Array(salt), cost)
    // Compares in constant time.
    if SymmetricKey(data: key) == SymmetricKey(data: expected) { return stored != nil }
    // Makes up for a cheaper stored hash: 2^n, plus all powers from 2^n to 2^(m-1), is 2^m.
    if cost.r == self.cost.r, cost.p == self.cost.p, cost.logN < self.cost.logN {
      for logN in cost.logN..<self.cost.logN {
        _ = try await derive(password, salt: Array(salt), Cost(logN: logN, r: cost.r, p: cost.p))
      }
    }
    return false
  }

  private func derive(_ password: String, salt: [UInt8], _ cost: Cost) async throws -> [UInt8] {
    // Keyboards may produce the same text in different Unicode forms.
    let bytes = Array(password.precomposedStringWithCanonicalMapping.utf8)
    return try await threads.run {
      let key = try KDF.Scrypt.deriveKey(
        from: bytes, salt: salt, outputByteCount: 32, rounds: 1 << cost.logN, blockSize: cost.r, parallelism: cost.p)
      return key.withUnsafeBytes { Array($0) }
    }
  }
}

/// Which passwords an account may have: their length, and the words that they must not be. Everything that clients read
/// about them comes from here.
extension Passwords {
  /// In characters, after normalization.
  static let length = 8...256
  /// Enough for characters of four bytes, or of two scalars.
  static let maximumBytes = 8 * length.upperBound

  /// The account that a password is for.
  struct Owner: Sendable {
    let username: String
    let displayName: String?
    let email: String?
  }

  /// A rule about a password that is long enough.
  private struct Rule: Sendable {
    let message: String
    /// - Parameter password: folded, as the words that it is compared with must be.
    let forbids: @Sendable (_ password: String, Owner) -> Bool
  }

  private static let rules = [
    Rule(message: "must not be one of the most common passwords") { password, _ in common.contains(password) },
    // Guessed first.
    Rule(
      message: "must not be the account's username, display name or e-mail address, nor the part before the @"
    ) { password, owner in
      [owner.username, owner.displayName, owner.email, owner.email.map { String($0.prefix { $0 != "@" }) }]
        .contains { $0.map(folded) == password }
    },
  ]

  /// - Parameter password: is long enough.
  /// - Returns: the rule that the password breaks, or nil.
  static func objection(to password: String, of owner: Owner) -> String? {
    let choice = folded(password)
    return rules.first { $0.forbids(choice, owner) }?.message
  }

  /// Without case and character width.
  private static func folded(_ text: String) -> String {
    text.precomposedStringWithCompatibilityMapping.lowercased()
  }

  private static let common = Set(
    Resources.commonPasswords.split(separator: "\n").filter { !$0.hasPrefix("#") }.map(String.init))
}

extension Fields.Rule where Value == String {
  /// A new password.
  static var password: Self {
    Self(placeholder: "") { json throws(Fields.Broken) in
      let password = try anyPassword.read(json)
      let length = Passwords.length
      guard length.contains(password.precomposedStringWithCanonicalMapping.unicodeScalars.count) else {
        throw Fields.Broken(.wrongLength, "must be \(length.lowerBound) to \(length.upperBound) characters long")
      }
      return password
    }
  }

  /// Not trimmed: spaces count like other characters.
  static var anyPassword: Self {
    Self(placeholder: "") { json throws(Fields.Broken) in
      guard case .string(let text) = json else { throw Fields.Broken.wrongType("a string", json) }
      guard text.utf8.count <= Passwords.maximumBytes else {
        throw Fields.Broken(.wrongLength, "must be at most \(Passwords.maximumBytes) bytes long")
      }
      guard !text.hasLongRunOfMarks else { throw Fields.Broken(.badFormat, String.markRule) }
      return text
    }
  }
}
