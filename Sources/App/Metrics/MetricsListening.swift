import Foundation

/// Where metrics are served.
public enum MetricsListening: Sendable, Equatable {
  case off
  /// On this machine, if the port is free.
  case byDefault
  case at(host: String, port: Int)

  /// `host:port`, `[::1]:9464` or `off`.
  init?(_ text: String) {
    if text == "off" {
      self = .off
      return
    }
    guard let colon = text.lastIndex(of: ":"), let port = UInt16(text[text.index(after: colon)...]) else { return nil }
    var host = text[..<colon]
    if host.hasPrefix("["), host.hasSuffix("]") {
      host = host.dropFirst().dropLast()
    } else if host.contains(":") {
      return nil
    }
    guard !host.isEmpty, host.utf8.allSatisfy({ (0x21...0x7e).contains($0) }) else { return nil }
    self = .at(host: String(host), port: Int(port))
  }
}
