import Foundation

/// Digests of items, in the form of the service's: they differ if the items do. Apps cannot tell that they are computed
/// in another way.
enum PreviewDigest {
  /// - Parameter json: an item as JSON, with sorted members.
  static func of(_ json: Data) -> String {
    // FNV-1a.
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in json { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
    let bytes = withUnsafeBytes(of: hash.bigEndian) { Data($0) }
    return bytes.base64EncodedString().replacingOccurrences(of: "+", with: "-")
      .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
  }
}
