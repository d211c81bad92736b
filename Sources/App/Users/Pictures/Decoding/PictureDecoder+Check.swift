import Foundation
import Logging

extension Dependencies {
  /// Logs how this machine sandboxes the picture decoder, and a warning unless it can decode pictures, so that the
  /// operator knows before users do.
  public func checkPictures() async {
    await pictureDecoder.check()
  }
}

extension PictureDecoder {
  /// A HEIC of 64 by 48 pixels.
  static let sample = Array(Data(base64Encoded: encodedSample) ?? Data())

  /// Tries a HEIC, because its decoder may be missing where libvips is installed.
  fileprivate func check() async {
    let measures = Containment.measures
    logger.info(
      "pictures are decoded in a sandbox",
      metadata: Dictionary(uniqueKeysWithValues: measures.map { ($0.of, "\($0.by ?? "none")") }))
    for measure in measures where measure.by == nil {
      logger.warning(
        "the sandbox of the picture decoder is incomplete: see Pictures in docs/deploying.md",
        metadata: ["missing": "\(measure.of)"])
    }
    do {
      _ = try await decode(Self.sample)
    } catch {
      guard !Task.isCancelled else { return }
      logger.warning(
        "some pictures cannot be uploaded: install libvips-tools and libheif's HEIC decoder",
        metadata: ["error": "\(error)"])
    }
  }

  private static let encodedSample = """
    AAAAHGZ0eXBoZWljAAAAAG1pZjFoZWljbWlhZgAAAa1tZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAAA5waXRtAAAA\
    AAACAAAAEGlkYXQAAAAAAEAAMAAAADhpbG9jAQAAAERAAAIAAQAAAAAAAAHRAAEAAAAAAAAALQACAAEAAAAAAAAAAQAAAAAAAAAIAAAAOGlpbmYA\
    AAAAAAIAAAAVaW5mZQIAAAEAAQAAaHZjMQAAAAAVaW5mZQIAAAAAAgAAZ3JpZAAAAADYaXBycAAAALZpcGNvAAAAdmh2Y0MBA3AAAAAAAAAAAAAe\
    8AD8/fj4AAAPAyAAAQAYQAEMAf//A3AAAAMAkAAAAwAAAwAeugJAIQABACpCAQEDcAAAAwCQAAADAAADAB6gIIEFlurkprm4EBAwIAAAAwAgAAAD\
    ACEiAAEABkQBwXPAiQAAABRpc3BlAAAAAAAAAEAAAABAAAAAFGlzcGUAAAAAAAAAQAAAADAAAAAQcGl4aQAAAAADCAgIAAAAGmlwbWEAAAAAAAAA\
    AgABAoECAAICA4QAAAAaaXJlZgAAAAAAAAAOZGltZwACAAEAAQAAADVtZGF0AAAAKSgBrxmA94SFN//iMr/mIF/ron7/LBr4KS/4iktfqeY6Hxv1\
    qouy0CSu
    """
}
