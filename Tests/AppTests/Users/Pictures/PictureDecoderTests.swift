import Foundation
import Logging
import TestSupport
import Testing

@testable import App

/// The programs that decode pictures: what they make of them, and what follows from their failures.
@Suite struct PictureDecoderTests {
  private func decoder(
    _ path: String = ProcessInfo.processInfo.environment["PATH"] ?? "", patience: Duration = .seconds(120),
    launcher: String = Program.path("muster"), logger: Logger = .quiet
  ) -> PictureDecoder {
    PictureDecoder(path: path, launcher: launcher, patience: patience, logger: logger)
  }

  /// A PNG of one color, with these chunks.
  private func png(_ pixel: [UInt8], width: Int = 8, height: Int = 8, _ metadata: [UInt8] = []) -> [UInt8] {
    let row: [UInt8] = [0] + Array(repeatElement(pixel, count: width).joined())
    return Sample.png(
      UInt32(width), UInt32(height), metadata, rows: Array(repeatElement(row, count: height).joined()))
  }

  /// A red block at the top left of 24 by 16 pixels, as a camera stores it that is held in this orientation, and as it
  /// is meant to be seen.
  private func pixels(_ orientation: UInt16) -> (stored: [UInt8], seen: [UInt8], isTurned: Bool) {
    let (width, height) = (24, 16)
    func rows(_ width: Int, _ height: Int, _ isRed: (_ x: Int, _ y: Int) -> Bool) -> [UInt8] {
      (0..<height).flatMap { y -> [UInt8] in
        [0] + (0..<width).flatMap { x -> [UInt8] in isRed(x, y) ? [255, 0, 0, 255] : [0, 0, 255, 255] }
      }
    }
    func isRed(_ x: Int, _ y: Int) -> Bool { x < 8 && y < 8 }
    let isTurned = orientation >= 5
    let seen = rows(isTurned ? height : width, isTurned ? width : height) { x, y in
      switch orientation {
      case 2: isRed(width - 1 - x, y)
      case 3: isRed(width - 1 - x, height - 1 - y)
      case 4: isRed(x, height - 1 - y)
      case 5: isRed(y, x)
      case 6: isRed(y, height - 1 - x)
      case 7: isRed(width - 1 - y, height - 1 - x)
      case 8: isRed(width - 1 - y, x)
      default: isRed(x, y)
      }
    }
    return (rows(width, height, isRed), seen, isTurned)
  }

  @Test(arguments: [false, true], 1...8 as ClosedRange<UInt16>)
  func `a turned or mirrored picture is upright`(_ isBig: Bool, _ orientation: UInt16) async throws {
    let (stored, seen, isTurned) = pixels(orientation)
    let tiff = Sample.tiff(orientation: orientation, isBig: isBig)
    let turned = try await decoder().decode(Sample.png(24, 16, Sample.chunk("eXIf", tiff), rows: stored))
    let upright = try await decoder().decode(Sample.png(isTurned ? 16 : 24, isTurned ? 24 : 16, rows: seen))
    #expect(turned.full == upright.full)
    let exif = Sample.segment(0xe1, Sample.join(Sample.ascii("Exif\0\0"), tiff))
    let photo = try await decoder().decode(Sample.jpeg(width: 64, height: 32, metadata: exif))
    #expect(try Sample.sides(of: Array(photo.full)) == (isTurned ? [32, 64] : [64, 32]))
  }

  @Test func `EXIF that makes no sense does no harm`() async throws {
    let tiff = Sample.tiff(orientation: 6)
    // One directory is far away, and the other one has more entries than fit.
    let far = Sample.join(Array(tiff.prefix(4)), [0xff, 0xff, 0xff, 0xff], Array(tiff.dropFirst(8)))
    let long = Sample.join(Array(tiff.prefix(8)), [0xff, 0xff, 0, 0], Array(tiff[12..<22]))
    for wrong in [far, long, Array(tiff.prefix(3)), Array(tiff.prefix(11)), []] {
      let exif = Sample.segment(0xe1, Sample.join(Sample.ascii("Exif\0\0"), wrong))
      let photo = try await decoder().decode(Sample.jpeg(width: 64, height: 32, metadata: exif))
      #expect(try Sample.sides(of: Array(photo.full)) == [64, 32])
    }
  }

  @Test func `a picture is as large as it was, or as the size allows`() async throws {
    let picture = try await decoder().decode(Sample.jpeg(width: 4096, height: 3072))
    let sides = try [picture.full, picture.large, picture.small].map { try Sample.sides(of: Array($0)) }
    #expect(sides == [[2048, 1536], [768, 576], [192, 144]])
    // Encoded once, if it fits.
    let icon = try await decoder().decode(png([1, 2, 3, 255], width: 100, height: 192))
    #expect(icon.full == icon.large && icon.large == icon.small)
    #expect(try Sample.sides(of: Array(icon.small)) == [100, 192])
  }

  @Test func `transparency becomes white`() async throws {
    let clear = try await decoder().decode(png([9, 8, 7, 0]))
    let white = try await decoder().decode(png([255, 255, 255, 255]))
    #expect(clear.full == white.full)
  }

  @Test func `of an animation, the first frame is kept`() async throws {
    let red = png([255, 0, 0, 255])
    let control = Sample.chunk("acTL", Sample.join(Sample.big(UInt32(2)), Sample.big(UInt32(0))))
    func frame(_ number: UInt32) -> [UInt8] {
      let sides = Sample.join(
        Sample.big(UInt32(8)), Sample.big(UInt32(8)), Sample.big(UInt32(0)), Sample.big(UInt32(0)))
      return Sample.chunk("fcTL", Sample.join(Sample.big(number), sides, [0, 1, 0, 10, 0, 0]))
    }
    let green = Sample.zlib(
      Array(repeatElement([0] + Array(repeatElement([0, 255, 0, 255], count: 8).joined()), count: 8).joined()))
    let second = Sample.join(frame(1), Sample.chunk("fdAT", Sample.join(Sample.big(UInt32(2)), green)))
    let first = png([255, 0, 0, 255], Sample.join(control, frame(0)))
    let end = try #require(first.firstRange(of: Sample.chunk("IEND", []))).lowerBound
    let animation = Sample.join(Array(first[..<end]), second, Array(first[end...]))
    #expect(try await decoder().decode(animation).full == decoder().decode(red).full)
  }

  @Test func `colors are converted to sRGB, and the profile is left out`() async throws {
    let profile = Sample.chunk("iCCP", Sample.ascii("x\0\0") + Sample.zlib(Sample.profileWithRedAndGreenExchanged))
    let exchanged = try await decoder().decode(png([255, 0, 0, 255], profile))
    let green = try await decoder().decode(png([0, 255, 0, 255]))
    #expect(exchanged.full == green.full)
    let red = try await decoder().decode(png([255, 0, 0, 255]))
    #expect(exchanged.full != red.full)
  }

  // MARK: Failures

  /// Runs `body` with shell scripts in place of the programs, and of the launcher that contains them.
  private func with(
    header: String = "echo 'stdin: 512x512 uchar, 4 bands, srgb, pngload_source'", thumbnail: String = "exit 1",
    _ body: (_ folder: String) async throws -> Void
  ) async throws {
    let scripts = ["vipsheader": header, "vipsthumbnail": thumbnail, "launcher": #"shift; exec "$@""#]
    try await StandIns.with(scripts, body)
  }

  private static let failures: [(script: String, error: AppError)] = [
    ("exit 126", .picturesUnavailable), ("exit 127", .picturesUnavailable), ("kill -9 $$", .picturesUnavailable),
    // Neither a JPEG nor a size.
    ("echo hello", .picturesUnavailable),
    ("exit 1", .notAPicture), ("kill -SEGV $$", .notAPicture), ("kill -XCPU $$", .notAPicture),
    ("exec cat /dev/zero", .notAPicture), ("exec cat /dev/zero >&2", .notAPicture),
  ]

  @Test func `a failure of the machine is not a failure of the picture`() async throws {
    // Larger than a pipe, so that the program ends before it has got all of it.
    let picture = Sample.png(length: 300_000)
    for (script, error) in Self.failures {
      try await with(header: script) { folder in
        await #expect(throws: error, "\(script)") {
          _ = try await decoder(folder, launcher: folder + "/launcher").decode(picture)
        }
      }
      try await with(thumbnail: script) { folder in
        await #expect(throws: error, "\(script)") {
          _ = try await decoder(folder, launcher: folder + "/launcher").decode(picture)
        }
      }
    }
    // The program may not pass on what it got.
    try await with(thumbnail: "exec cat") { folder in
      await #expect(throws: AppError.picturesUnavailable) {
        _ = try await decoder(folder, launcher: folder + "/launcher").decode(picture)
      }
    }
  }

  @Test func `more bytes than the database takes are refused`() async throws {
    let long = #"printf '\xff\xd8\xff'; exec head -c 2000000 /dev/zero"#
    for side in [64, 2000] {
      let header = "echo 'stdin: \(side)x\(side) uchar, 3 bands, srgb, jpegload_source'"
      try await with(header: header, thumbnail: long) { folder in
        await #expect(throws: AppError.notAPicture, "\(side)") {
          _ = try await decoder(folder, launcher: folder + "/launcher").decode(Sample.png())
        }
      }
    }
  }

  @Test func `a picture that is too large is refused before it is decoded`() async throws {
    for size in ["4097x1", "1x4097", "0x5", "5x0", "4294967295x1", "99999999999999999999x1"] {
      let log = CapturedLog()
      let header = "echo 'stdin: \(size) uchar, 3 bands, srgb, jpegload_source'"
      // If it ran, it would be a failure of the machine.
      try await with(header: header, thumbnail: "exit 127") { folder in
        await #expect(throws: AppError.notAPicture, "\(size)") {
          _ = try await decoder(folder, launcher: folder + "/launcher", logger: log.logger()).decode(Sample.png())
        }
      }
      #expect(log.lines.isEmpty)
    }
  }

  @Test func `a program that hangs is ended`() async throws {
    try await with(header: "exec sleep 100000") { folder in
      // Returns only when the program has ended.
      await #expect(throws: AppError.tooManyUploads) {
        _ = try await decoder(folder, patience: .milliseconds(200)).decode(Sample.png())
      }
      let cancelled = Task { _ = try await decoder(folder).decode(Sample.png()) }
      cancelled.cancel()
      await #expect(throws: CancellationError.self) { try await cancelled.value }
    }
  }

  #if os(Linux)
    @Test func `a program has limits, a low priority, and nothing of this process`() async throws {
      let log = CapturedLog()
      let script = """
        exec >&2
        for limit in '-c' '-f' '-S -t' '-H -t' '-v' '-n' '-u'; do ulimit $limit; done
        # The shell itself uses 10 and 11 meanwhile.
        for file in {3..9} {12..60}; do true 2>&- >&$file && echo "open $file"; done
        [ -z "${HOME-}${TMPDIR-}${USER-}${MUSTER_TEST_CLUSTER-}" ] || echo environment
        echo end
        exit 127
        """
      try await with(header: script) { folder in
        await #expect(throws: AppError.picturesUnavailable) {
          _ = try await decoder(folder, logger: log.logger()).decode(Sample.png())
        }
      }
      let said = try #require(log.text.firstMatch(of: /0\s+0\s+10\s+11\s+786432\s+64\s+(\d+)\s+end/), "\(log.text)")
      // No more threads than the system had, and some.
      let threads = try #require(Int(said.1))
      #expect((64...1_000_000).contains(threads))
      try await with(header: "exec nice") { folder in
        _ = try? await decoder(folder, logger: log.logger()).decode(Sample.png())
      }
      #expect(log.text.contains(/vipsheader printed "1\d/), "\(log.text)")
    }
  #endif
}

/// Scripts in place of programs.
enum StandIns {
  /// Runs `body` with a folder that every account can read.
  static func with(_ scripts: [String: String], _ body: (_ folder: String) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "muster-decoder-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
    defer { try? FileManager.default.removeItem(atPath: folder) }
    for (name, script) in scripts {
      // Another process writes it. A process that is started while this one writes it would hold it open for a moment,
      // and Linux runs no file that is open for writing.
      let writer = try await Program(
        "/bin/sh", ["-c", #"printf '#!/bin/bash\n%s\n' "$1" >"$0" && chmod 755 "$0""#, "\(folder)/\(name)", script])
      #expect(try await writer.exitStatus() == 0)
    }
    try await body(folder)
  }
}
