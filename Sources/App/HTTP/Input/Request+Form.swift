import Foundation
import HTTPServer

extension Request {
  /// The maximum length of a form, in bytes. All forms that a page can send are shorter.
  static let maximumForm = 16 << 10

  /// The fields of a form, `application/x-www-form-urlencoded`, as strings. The length is checked before anything else,
  /// and then the names and values, as for JSON: no U+0000, and no name twice.
  ///
  /// - Throws: `body-too-large`, `unsupported-media-type` or `malformed-body`.
  func form() async throws -> JSON.Object {
    let buffer = try await bytes(upTo: Self.maximumForm, else: .formTooLarge)
    let type = (headers.value(of: .contentType) ?? "").prefix { $0 != ";" }.trimmingCharacters(in: .whitespaces)
    guard type.lowercased() == "application/x-www-form-urlencoded" else { throw AppError.notAForm }
    guard let fields = JSON.Object(form: Array(try text(of: buffer))) else { throw AppError.malformedForm }
    return fields
  }
}

extension Request {
  /// Whether a browser says that another site's page sent the request.
  var isCrossSite: Bool { headers[.secFetchSite]?.lowercased() == "cross-site" }
}

extension HTTPField.Name {
  static let secFetchSite = HTTPField.Name("Sec-Fetch-Site")!
}

extension JSON.Object {
  private static let maximumFields = 32

  /// Nil if the form is malformed.
  init?(form bytes: [UInt8]) {
    self.init()
    for pair in bytes.split(separator: UInt8(ascii: "&")) {
      let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
      guard count < Self.maximumFields, let name = Self.text(parts[0]),
        let value = parts.count == 2 ? Self.text(parts[1]) : "", insert(.string(value), forKey: name)
      else { return nil }
    }
  }

  private static func text(_ encoded: ArraySlice<UInt8>) -> String? {
    var bytes: [UInt8] = []
    var rest = encoded[...]
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "+"): bytes.append(UInt8(ascii: " "))
      case UInt8(ascii: "%"):
        guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else {
          return nil
        }
        bytes.append(value)
        rest = rest.dropFirst(2)
      default: bytes.append(byte)
      }
    }
    return bytes.contains(0) ? nil : String(validating: bytes, as: UTF8.self)
  }

  /// A field of a form. Empty if it is absent.
  func field(_ name: String) -> String {
    if case .string(let text)? = self[name] { text } else { "" }
  }
}

extension AppError {
  static let formTooLarge = AppError(
    .tooLarge, "body-too-large", "The form must be at most \(Request.maximumForm >> 10) KiB.")
  static let notAForm = AppError(
    .unsupportedMediaType, "unsupported-media-type",
    "The body must be a form: Content-Type: application/x-www-form-urlencoded.")
  static let malformedForm = AppError(.malformed, "malformed-body", "The form is malformed.")
}
