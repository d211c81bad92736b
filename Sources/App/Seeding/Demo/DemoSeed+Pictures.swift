import Crypto
import Foundation

extension DemoSeed {
  /// Gives a new user their picture, as if they had uploaded it. The sizes were made before, so that planting needs no
  /// other program.
  func plantPicture(of person: PersonSeed, in change: Change) async throws {
    let sizes = try picture(of: person)
    try await Picture(sizes).put(of: person.user, key: Self.key(of: sizes), in: change)
  }

  func picture(of person: PersonSeed) throws -> DecodedPicture {
    // It has fewer pixels than the larger sizes, and is not enlarged.
    let whole = try file(".jpg", of: person)
    return DecodedPicture(small: try file("-192.jpg", of: person), large: whole, full: whole)
  }

  /// The URL of a demo picture is the same on every machine. Anyone can see the picture in the source anyway.
  static func key(of picture: DecodedPicture) -> String {
    Data(SHA256.hash(data: picture.full).prefix(Picture.keyLength)).base64URL
  }

  private func file(_ ending: String, of person: PersonSeed) throws -> Data {
    let name = person.username + ending
    guard let text = Resources.seedPictures[name], let bytes = Data(base64Encoded: text) else {
      throw AppError.invalidSeed("The picture \(name) is missing.")
    }
    return bytes
  }
}
