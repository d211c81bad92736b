import Foundation

/// A set of addresses, given as CIDR blocks.
public struct AddressBlocks: Sendable {
  private struct Block: Sendable {
    let address: IPAddress
    /// The number of leading bits to compare, out of 128.
    let length: Int
  }

  private let blocks: [Block]

  /// The empty set.
  public init() {
    blocks = []
  }

  /// Comma-separated addresses and CIDR blocks; nil if one of them is neither.
  public init?(_ text: String) {
    var blocks: [Block] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let pieces = part.trimmingCharacters(in: .whitespaces).split(separator: "/", omittingEmptySubsequences: false)
      guard pieces.count <= 2, let address = IPAddress(pieces[0]) else { return nil }
      let width = address.isIPv4 ? 32 : 128
      var length = width
      if pieces.count == 2 {
        guard pieces[1].first != "+", let given = Int(pieces[1]), (0...width).contains(given) else { return nil }
        length = given
      }
      blocks.append(Block(address: address, length: 128 - width + length))
    }
    self.blocks = blocks
  }

  public var isEmpty: Bool { blocks.isEmpty }

  public func contains(_ address: IPAddress) -> Bool {
    blocks.contains { ($0.address.bits ^ address.bits) >> (128 - $0.length) == 0 }
  }
}
