import CLibpq

/// The options of a libpq URI or `key=value` string.
struct ConnectionString: Sendable {
  private(set) var options: [String: String] = [:]
  /// Whether each connection tries the hosts in a random order.
  let isBalanced: Bool

  /// - Throws: ``PostgresError``, which quotes no part of the text because it may contain a password.
  init(_ text: String) throws {
    let malformed = PostgresError(.invalidParameter, "the database URL is not a libpq connection string")
    let (text, balancing) = Self.withoutBalancing(text)
    guard ["disable", "random"].contains(balancing), let list = PQconninfoParse(text, nil) else { throw malformed }
    defer { PQconninfoFree(list) }
    isBalanced = balancing == "random"
    var item = list
    while let keyword = item.pointee.keyword {
      if let value = item.pointee.val { options[String(cString: keyword)] = String(cString: value) }
      item += 1
    }
    let ports = values("port") ?? []
    guard ports.allSatisfy({ $0.isEmpty || UInt16($0) != nil }) else { throw malformed }
    // libpq reports these mistakes only when it connects.
    let counts = [values("host"), values("hostaddr")].compactMap { $0?.count }
    guard Set(counts).count <= 1 else {
      throw PostgresError(.invalidParameter, "the database URL has a different number of host and hostaddr values")
    }
    guard ports.count <= 1 || ports.count == counts.first ?? 1 else {
      throw PostgresError(.invalidParameter, "the database URL has a different number of hosts and ports")
    }
    // With this option, libpq also shuffles the addresses of one name.
    if isBalanced, PQlibVersion() >= 160_000 { options["load_balance_hosts"] = "random" }
  }

  /// The time limit for connecting to each host, at most a day; nil if the text has none.
  var connectTimeout: Duration? {
    guard let seconds = options["connect_timeout"].flatMap({ Int($0) }), seconds > 0 else { return nil }
    return .seconds(min(seconds, 86_400))
  }

  /// The options that differ between the hosts. libpq's own iteration over the hosts does not respect our deadline and
  /// always starts with the first host.
  var hosts: [[String: String]] {
    let (names, addresses, ports) = (values("host"), values("hostaddr"), values("port") ?? [])
    let count = (addresses ?? names)?.count ?? 1
    // Only libpq can choose the preferred host.
    guard count > 1, options["target_session_attrs"] != "prefer-standby" else { return [[:]] }
    return (0..<count).map { index in
      var host: [String: String] = [:]
      host["host"] = names?[index]
      host["hostaddr"] = addresses?[index]
      if ports.count == count { host["port"] = ports[index] }
      return host
    }
  }

  private func values(_ name: String) -> [String]? {
    options[name]?.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
  }

  /// Takes `load_balance_hosts` out of the text: libpq before version 16 rejects it.
  private static func withoutBalancing(_ text: String) -> (text: String, value: String) {
    if text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") {
      guard let match = text.firstMatch(of: /([?&])load_balance_hosts=([^&]*)(&?)/) else { return (text, "disable") }
      let separator = match.3.isEmpty ? "" : match.1
      return (text.replacingCharacters(in: match.range, with: separator), String(match.2))
    }
    guard let match = text.firstMatch(of: /(?:^|\s)load_balance_hosts\s*=\s*'?(\w*)'?/) else {
      return (text, "disable")
    }
    return (text.replacingCharacters(in: match.range, with: ""), String(match.1))
  }
}

extension String {
  fileprivate func replacingCharacters(in range: Range<Index>, with new: some StringProtocol) -> String {
    "\(self[..<range.lowerBound])\(new)\(self[range.upperBound...])"
  }
}
