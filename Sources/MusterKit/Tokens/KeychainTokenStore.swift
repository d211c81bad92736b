#if canImport(Security)
  import Foundation
  import Security

  /// Keeps tokens in the keychain, for one device and from the first unlock on.
  public struct KeychainTokenStore: TokenStore {
    private let service: String
    private let accessGroup: String?
    private let lock: FileLock

    /// - Parameters:
    ///   - service: the name of the keychain item. Use one for each server.
    ///   - accessGroup: for an app with extensions, the keychain access group that they share.
    ///   - lockFolder: for an app with extensions, the folder of the app group that they share; else a folder of the
    ///     app. It has the lock that lets one of them refresh at a time.
    public init(service: String, accessGroup: String? = nil, lockFolder: URL) {
      self.service = service
      self.accessGroup = accessGroup
      lock = FileLock(file: lockFolder.appendingPathComponent("\(service).lock"))
    }

    public func load() throws -> StoredTokens? {
      var query = item
      query[kSecReturnData] = true
      query[kSecMatchLimit] = kSecMatchLimitOne
      var found: CFTypeRef?
      switch SecItemCopyMatching(query as CFDictionary, &found) {
      case errSecSuccess:
        return (found as? Data).flatMap { try? JSONDecoder.muster().decode(StoredTokens.self, from: $0) }
      case errSecItemNotFound: return nil
      case let status: throw failure(status)
      }
    }

    public func save(_ tokens: StoredTokens) throws {
      let value: [CFString: Any] = [
        kSecValueData: try JSONEncoder.muster().encode(tokens),
        kSecAttrAccessible: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
      ]
      var status = SecItemUpdate(item as CFDictionary, value as CFDictionary)
      if status == errSecItemNotFound {
        status = SecItemAdd(item.merging(value) { $1 } as CFDictionary, nil)
      }
      guard status == errSecSuccess else { throw failure(status) }
    }

    public func clear() throws {
      let status = SecItemDelete(item as CFDictionary)
      guard status == errSecSuccess || status == errSecItemNotFound else { throw failure(status) }
    }

    public func withRefreshLock<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
      try await lock.withLock(body)
    }

    private var item: [CFString: Any] {
      var item: [CFString: Any] = [
        kSecClass: kSecClassGenericPassword,
        kSecAttrService: service,
        kSecAttrAccount: "tokens",
        kSecUseDataProtectionKeychain: true,
      ]
      if let accessGroup { item[kSecAttrAccessGroup] = accessGroup }
      return item
    }

    private func failure(_ status: OSStatus) -> MusterError {
      let reason = SecCopyErrorMessageString(status, nil).map { $0 as String } ?? "status \(status)"
      return .tokensUnavailable("The keychain refused: \(reason)")
    }
  }
#endif
