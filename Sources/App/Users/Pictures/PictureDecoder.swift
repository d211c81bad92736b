import Foundation
import Logging
import Subprocess

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// Decodes uploaded pictures with libvips' commands `vipsheader` and `vipsthumbnail`, and re-encodes them.
///
/// Users choose what a decoder reads, so an error in it may let them run a program of theirs. Therefore each step is a
/// process of its own, which gets neither our environment nor our open files: see ``Containment``.
final class PictureDecoder: Sendable {
  /// A larger picture takes too much memory to decode.
  static let longestSide = 4096
  private static let maximumMessages = 16 << 10
  private static let maximumAtOnce = 2
  /// Open files while programs start: pipes, the working directory and the process.
  private static let files = 16 * maximumAtOnce

  /// All variables of the programs.
  private static let environment: [Environment.Key: String] = [
    "PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C",
    // Disables decoders that libvips does not trust with untrusted files.
    "VIPS_BLOCK_UNTRUSTED": "1", "VIPS_CONCURRENCY": "1", "VIPS_WARNING": "0",
    // Disables run-time code generation, which writes a file.
    "VIPS_NOVECTOR": "1",
    // The programs can write no files. The limit of memory comes first.
    "VIPS_DISC_THRESHOLD": "2g",
    // glibc reserves much address space for each thread otherwise.
    "MALLOC_ARENA_MAX": "1",
  ]

  /// Converts colors. Pictures without a profile are in sRGB. Profiles that consist of a table often have one for the
  /// perceptual intent only.
  private static let toStandardColors = [
    "--import-profile", "srgb", "--export-profile", "srgb", "--intent", "perceptual",
  ]

  private let folders: [String]
  private let launcher: String
  private let patience: Duration
  let logger: Logger
  private let seats = Seats(PictureDecoder.maximumAtOnce)

  /// - Parameters:
  ///   - path: the folders with the programs, as in `PATH`.
  ///   - launcher: the executable `muster`.
  ///   - patience: how long a picture may take, including the wait for those before it.
  init(path: String, launcher: String, patience: Duration, logger: Logger) {
    folders = path.split(separator: ":").map(String.init).filter { $0.hasPrefix("/") }
    (self.launcher, self.patience, self.logger) = (launcher, patience, logger)
    // A program that ends before it has read its picture must not end this process.
    _ = signal(SIGPIPE, SIG_IGN)
  }

  /// Makes a JPEG of each size. A smaller picture keeps its size.
  ///
  /// - Throws: ``AppError/notAPicture`` if it cannot be decoded within the limits, ``AppError/tooManyUploads`` if it
  ///   takes too long, ``AppError/picturesUnavailable`` if the programs do not work.
  func decode(_ picture: [UInt8]) async throws -> DecodedPicture {
    guard PictureFormat(of: picture) != nil else { throw AppError.notAPicture }
    return try await withThrowingTaskGroup(of: DecodedPicture.self) { group in
      group.addTask { [self] in
        try await seats.hold { try await sizes(of: picture) }
      }
      group.addTask { [patience] in
        try await Task.sleep(for: patience)
        throw AppError.tooManyUploads
      }
      // This also ends the program.
      defer { group.cancelAll() }
      guard let first = try await group.next() else { throw CancellationError() }
      return first
    }
  }

  private func sizes(of picture: [UInt8]) async throws -> DecodedPicture {
    let longest = try await longerSide(of: picture)
    // A picture that fits into the second size is also that size.
    let first: PictureSize = longest <= PictureSize.large.side ? .large : .full
    var full = try await jpeg(of: picture, within: first, Self.toStandardColors)
    // libvips cannot convert the colors of gray pictures without a profile, and of pictures with a broken one.
    if full == nil { full = try await jpeg(of: picture, within: first) }
    guard let full else { throw AppError.notAPicture }
    // Decoding a larger size is much cheaper than decoding the picture again.
    let large = first == .large ? full : try await jpeg(of: full, within: .large)
    guard let large else { throw unavailable("the program cannot read its own JPEG") }
    let small = longest <= PictureSize.small.side ? large : try await jpeg(of: large, within: .small)
    guard let small else { throw unavailable("the program cannot read its own JPEG") }
    return DecodedPicture(small: Data(small), large: Data(large), full: Data(full))
  }

  /// Reads the size from the header, before anything is decoded.
  ///
  /// - Throws: ``AppError/notAPicture`` if a side is too long.
  private func longerSide(of picture: [UInt8]) async throws -> Int {
    guard let output = try await run("vipsheader", ["stdin"], on: picture, upTo: Self.maximumMessages) else {
      throw AppError.notAPicture
    }
    // "stdin: 4032x3024 uchar, 3 bands, srgb, heifload_source", or the same without the name.
    let text = String(decoding: output, as: UTF8.self)
    guard let found = text.firstMatch(of: #/^(?:stdin: )?(\d+)x(\d+) /#) else {
      throw unavailable("vipsheader printed \"\(text.prefix(100))\"")
    }
    // Nil for a number that is too long for one.
    guard let width = Int(found.1), let height = Int(found.2), (1...Self.longestSide).contains(width),
      (1...Self.longestSide).contains(height)
    else { throw AppError.notAPicture }
    return max(width, height)
  }

  /// Nil if the program cannot decode the picture, or convert its colors.
  private func jpeg(
    of picture: [UInt8], within size: PictureSize, _ colors: [String] = []
  ) async throws -> [UInt8]? {
    let arguments =
      ["stdin[fail_on=error]", "--size", "\(size.side)x\(size.side)>"] + colors
      + ["--output", ".jpg[Q=80,strip,background=255]"]
    guard let output = try await run("vipsthumbnail", arguments, on: picture, upTo: size.maximumLength) else {
      return nil
    }
    guard PictureFormat(of: output) == .jpeg else { throw unavailable("the program returned no JPEG") }
    return output
  }

  /// Runs a program, contained. Nil if it refuses its input.
  private func run(
    _ program: String, _ arguments: [String], on input: [UInt8], upTo length: Int
  ) async throws -> [UInt8]? {
    let paths = folders.map { "\($0)/\(program)" }
    guard let path = paths.first(where: { access($0, X_OK) == 0 }) else {
      throw unavailable("there is no \(program) in \(folders.joined(separator: ":"))")
    }
    // Subprocess ends this process if it has one pipe and cannot open the next.
    guard FileLimit.hasRoom(for: Self.files) else { throw unavailable("too many open files") }
    do {
      let result = try await Subprocess.run(
        .path(FilePath(launcher)), arguments: Arguments([Containment.command, path] + arguments),
        environment: .custom(Self.environment), workingDirectory: "/", input: .inputWriter,
        output: .bytes(limit: length), error: .string(limit: Self.maximumMessages)
      ) { process in
        // A program that refuses a picture stops reading. Its status says more than this error.
        _ = try? await process.standardInputWriter.write(input)
      }
      // A cancelled program was killed.
      try Task.checkCancellation()
      return try hasSucceeded(result.terminationStatus, result.standardError) ? result.standardOutput : nil
    } catch let error as SubprocessError {
      try Task.checkCancellation()
      if error.code == .outputLimitExceeded { throw AppError.notAPicture }
      throw unavailable("\(error)")
    }
  }

  /// - Throws: ``AppError/picturesUnavailable`` for a failure of this machine, ``AppError/notAPicture`` for a crash and
  ///   beyond a limit.
  private func hasSucceeded(_ status: TerminationStatus, _ messages: String) throws -> Bool {
    switch status {
    case .exited(0): return true
    // The program is missing, cannot start, or cannot be contained.
    case .exited(126), .exited(127): throw unavailable(String(messages.prefix(500)))
    case .signaled(SIGKILL): throw unavailable("killed: the machine may be out of memory")
    case .exited: return false
    case .signaled(let number):
      logger.warning("a picture crashed its decoder", metadata: ["signal": "\(number)"])
      throw AppError.notAPicture
    }
  }

  private func unavailable(_ reason: String) -> AppError {
    logger.error("pictures cannot be decoded", metadata: ["error": "\(reason)"])
    return .picturesUnavailable
  }
}

extension AppError {
  static let picturesUnavailable = AppError(
    .unavailable, "pictures-unavailable", "Pictures cannot be stored at the moment. Nothing was changed. Try again.",
    retryAfter: 60)
}

/// The decoder's output for an uploaded picture: JPEGs in sRGB, upright, on white, without metadata.
struct DecodedPicture: Sendable {
  let small: Data
  let large: Data
  let full: Data
}

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

/// The formats of pictures that users may upload.
enum PictureFormat: Equatable {
  case jpeg, png, webp, heic

  /// Judges by the first bytes, as decoders do. The decoder judges the rest. Nil for any other format: the decoder may
  /// know formats that few people have tested against hostile files.
  init?(of bytes: [UInt8]) {
    if bytes.starts(with: [0xff, 0xd8, 0xff]) {
      self = .jpeg
    } else if bytes.starts(with: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]) {
      self = .png
    } else if bytes.starts(with: "RIFF".utf8), bytes.dropFirst(8).starts(with: "WEBP".utf8) {
      self = .webp
    } else if Self.isHEIC(bytes) {
      self = .heic
    } else {
      return nil
    }
  }

  /// Whether the file begins with a box that names one of HEIC's brands: the main brand or, after its version, a
  /// compatible one.
  private static func isHEIC(_ bytes: [UInt8]) -> Bool {
    guard bytes.count >= 12, bytes.dropFirst(4).starts(with: "ftyp".utf8) else { return false }
    let length = bytes[..<4].reduce(0) { $0 << 8 | Int($1) }
    let names = stride(from: 8, to: min(length, bytes.count, longestBrands) - 3, by: 4)
    return names.contains { place in brands.contains { bytes[place...].starts(with: $0.utf8) } }
  }

  private static let brands = ["heic", "heix", "heim", "heis"]
  /// Encoders name a dozen brands at most.
  private static let longestBrands = 512
}
