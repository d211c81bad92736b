import Foundation

/// Decodes one column for a type that is neither a ``SQLValue`` nor read from JSON, such as an enumeration.
struct CellDecoder: Decoder {
  let container: CellContainer
  var codingPath: [any CodingKey] { [] }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    throw container.mismatch(KeyedDecodingContainer<Key>.self, CellMismatch.type)
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    throw container.mismatch((any UnkeyedDecodingContainer).self, CellMismatch.type)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { container }
}
