import Crypto
import CryptoExtras
import Foundation
import Synchronization

/// Hashes passwords with scrypt, off the event loops: a few at once, and only so many waiting.
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
  }

  private let cost: Cost
  private let queue = OperationQueue()
  private let waiting = Mutex(0)
  private static let maximumWaiting = 64

  public init(cost: Cost) {
    self.cost = cost
    queue.name = "passwords"
    queue.maxConcurrentOperationCount = max(1, ProcessInfo.processInfo.activeProcessorCount - 1)
  }

  /// - Returns: a PHC-like string that holds the parameters and the salt: `$scrypt$ln=15,r=8,p=3$salt$hash`.
  func hash(_ password: String) async throws -> String {
    var salt = [UInt8](repeating: 0, count: 16)
    for index in salt.indices { salt[index] = .random(in: 0...255) }
    let key = try await derive(password, salt: salt, cost)
    return "$scrypt$\(cost.text)$\(Data(salt).base64EncodedString())$\(Data(key).base64EncodedString())"
  }

  /// Takes the same time whether the account exists (`stored` is nil where it does not) and whether the password is
  /// right, as long as stored hashes have this process's cost.
  func verify(_ password: String, against stored: String?) async throws -> Bool {
    let parts = stored?.split(separator: "$") ?? []
    guard parts.count == 4, parts[0] == "scrypt", let cost = Cost(parts[1]),
      let salt = Data(base64Encoded: String(parts[2])), let expected = Data(base64Encoded: String(parts[3]))
    else {
      _ = try await derive(password, salt: Array(repeating: 0, count: 16), cost)
      return false
    }
    let key = try await derive(password, salt: Array(salt), cost)
    // Compares in constant time.
    return SymmetricKey(data: key) == SymmetricKey(data: expected)
  }

  private func derive(_ password: String, salt: [UInt8], _ cost: Cost) async throws -> [UInt8] {
    let isAdmitted = waiting.withLock { waiting in
      guard waiting < Self.maximumWaiting else { return false }
      waiting += 1
      return true
    }
    guard isAdmitted else { throw AppError.tooManyPasswords }
    defer { waiting.withLock { $0 -= 1 } }
    // The same text may be typed in several Unicode forms.
    let bytes = Array(password.precomposedStringWithCanonicalMapping.utf8)
    let job = Job()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        guard job.begin(continuation) else { return }
        queue.addOperation {
          // A caller who is gone waits no longer, and what is not begun need not be.
          guard job.isWanted else { return }
          job.end(
            Result {
              let key = try KDF.Scrypt.deriveKey(
                from: bytes, salt: salt, outputByteCount: 32, rounds: 1 << cost.logN, blockSize: cost.r,
                parallelism: cost.p)
              return key.withUnsafeBytes { Array($0) }
            })
        }
      }
    } onCancel: {
      job.end(.failure(CancellationError()))
    }
  }

  /// One caller's wait: ends once, by a result or by giving up.
  private final class Job: Sendable {
    private enum State {
      case new, ended
      case waiting(CheckedContinuation<[UInt8], any Error>)
    }

    private let state = Mutex(State.new)

    /// False if the caller gave up before.
    func begin(_ continuation: CheckedContinuation<[UInt8], any Error>) -> Bool {
      let isWanted = state.withLock { state in
        guard case .new = state else { return false }
        state = .waiting(continuation)
        return true
      }
      if !isWanted { continuation.resume(throwing: CancellationError()) }
      return isWanted
    }

    var isWanted: Bool {
      state.withLock { if case .waiting = $0 { true } else { false } }
    }

    func end(_ result: Result<[UInt8], any Error>) {
      let waiting = state.withLock { state -> CheckedContinuation<[UInt8], any Error>? in
        defer { state = .ended }
        if case .waiting(let continuation) = state { return continuation }
        return nil
      }
      waiting?.resume(with: result)
    }
  }
}

extension AppError {
  static var tooManyPasswords: AppError {
    var error = AppError(.unavailable, "busy", "Too many people are signing in just now.")
    error.retryAfter = 2
    return error
  }
}
