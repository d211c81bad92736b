import Foundation
import Testing

@testable import App

/// The parts of a signed token, not verified yet.
struct TokenParts {
  let header: JSON
  let claims: JSON
  let signed: Data
  let signature: Data

  init(_ text: some StringProtocol) throws {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false).map { String($0) }
    try #require(parts.count == 3)
    header = try JSON(parsing: try #require(Data(base64URL: parts[0])))
    claims = try JSON(parsing: try #require(Data(base64URL: parts[1])))
    signed = Data("\(parts[0]).\(parts[1])".utf8)
    signature = try #require(Data(base64URL: parts[2]))
  }
}
