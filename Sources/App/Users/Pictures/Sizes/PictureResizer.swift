import Foundation
import Logging
import Subprocess

#if canImport(System)
  import System
#else
  import SystemPackage
#endif

/// Makes the sizes of pictures with libvips' command `vipsthumbnail`.
///
/// Users choose what a decoder reads. So each picture has a process of its own, which gets neither our environment nor
/// our open files, and has limited memory and time.
final class PictureResizer: Sendable {
  /// KiB of address space. With Debian 12's libvips, the most demanding pictures of 4096 by 4096 pixels need 250 MiB
  /// (PNG, WebP), 300 MiB (interlaced PNG of 16 bits) and 400 MiB (HEIC).
  private static let memory = 768 << 10
  /// Seconds of processor time. The same pictures need 1.5 seconds.
  private static let processorSeconds = 10
  /// Noise of 768 by 768 pixels has 360 KiB.
  private static let maximumLength = 1 << 20
  private static let maximumMessages = 16 << 10
  private static let maximumAtOnce = 2
  /// Open files while programs start: pipes, the working directory and the process.
  private static let files = 16 * maximumAtOnce

  /// Limits the program, which replaces the shell. It writes no files. A program that exceeds the soft limit of
  /// processor time gets SIGXCPU, which can be distinguished from the kernel's out-of-memory kill.
  private static let script: String = {
    var limits = ["-c 0", "-f 0", "-t \(processorSeconds + 1)", "-S -t \(processorSeconds)"]
    #if os(Linux)
      // macOS has no such limit.
      limits.append("-v \(memory)")
    #endif
    let all = limits.map { "ulimit \($0)" }.joined(separator: " && ")
    return #"{ \#(all); } || exit 126; exec nice -n 10 "$0" "$@""#
  }()

  /// All variables of the program.
  private static let environment: [Environment.Key: String] = [
    "PATH": ProcessInfo.processInfo.environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C",
    // Disables decoders that libvips does not trust with untrusted files.
    "VIPS_BLOCK_UNTRUSTED": "1", "VIPS_CONCURRENCY": "1", "VIPS_WARNING": "0",
    // Disables run-time code generation, which writes a file.
    "VIPS_NOVECTOR": "1",
    // glibc reserves much address space for each thread otherwise.
    "MALLOC_ARENA_MAX": "1",
  ]

  /// Converts colors. Pictures without a profile are in sRGB.
  private static let toStandardColors = ["--import-profile", "srgb", "--export-profile", "srgb"]

  private let program: String
  private let patience: Duration
  let logger: Logger
  private let seats = Seats(PictureResizer.maximumAtOnce)

  /// - Parameters:
  ///   - program: a name or path.
  ///   - patience: how long a picture may take, including the wait for those before it.
  init(program: String, patience: Duration, logger: Logger) {
    (self.program, self.patience, self.logger) = (program, patience, logger)
    // A program that ends before it has read its picture must not end this process.
    _ = signal(SIGPIPE, SIG_IGN)
  }

  /// Makes a JPEG of each size: upright, in sRGB, on white, without metadata. A smaller picture keeps its size.
  ///
  /// - Throws: ``AppError/notAPicture`` if it cannot be decoded within the limits, ``AppError/tooManyUploads`` if it
  ///   takes too long, ``AppError/picturesUnavailable`` if the program does not work.
  func resize(_ picture: [UInt8]) async throws -> (small: [UInt8], large: [UInt8]) {
    try await withThrowingTaskGroup(of: (small: [UInt8], large: [UInt8]).self) { group in
      group.addTask { [self] in
        try await seats.hold { try await sizes(of: picture) }
      }
      group.addTask { [patience] in
        try await Task.sleep(for: patience)
        throw AppError.tooManyUploads
      }
      // This ends the program, too.
      defer { group.cancelAll() }
      guard let first = try await group.next() else { throw CancellationError() }
      return first
    }
  }

  private func sizes(of picture: [UInt8]) async throws -> (small: [UInt8], large: [UInt8]) {
    var large = try await jpeg(of: picture, within: .large, Self.toStandardColors)
    // libvips cannot convert the colors of gray pictures without a profile, and of pictures with a broken one.
    if large == nil { large = try await jpeg(of: picture, within: .large) }
    // Decoding the larger size is much cheaper than decoding the picture again.
    guard let large, let small = try await jpeg(of: large, within: .small) else { throw AppError.notAPicture }
    return (small, large)
  }

  /// Runs the program. Nil if it cannot convert the colors.
  private func jpeg(
    of picture: [UInt8], within size: PictureSize, _ colors: [String] = []
  ) async throws -> [UInt8]? {
    let arguments =
      ["stdin[fail_on=error]", "--size", "\(size.side)x\(size.side)>"] + colors
      + ["--output", ".jpg[Q=80,strip,background=255]"]
    // Subprocess ends this process if it has one pipe and cannot open the next.
    guard FileLimit.hasRoom(for: Self.files) else { throw unavailable("too many open files") }
    do {
      let result = try await Subprocess.run(
        .path("/bin/sh"), arguments: Arguments(["-c", Self.script, program] + arguments),
        environment: .custom(Self.environment), workingDirectory: "/", input: .inputWriter,
        output: .bytes(limit: Self.maximumLength), error: .string(limit: Self.maximumMessages)
      ) { process in
        // A program that refuses a picture stops reading. Its status says more than this error.
        _ = try? await process.standardInputWriter.write(picture)
      }
      // A cancelled program was killed.
      try Task.checkCancellation()
      guard try hasDecoded(result.terminationStatus, result.standardError) else {
        // The name of the failed operation begins the message.
        guard result.standardError.contains("icc_") else { throw AppError.notAPicture }
        return nil
      }
      // The result of a program that a picture has taken over is still only a picture.
      guard let clean = CleanPicture(of: result.standardOutput), clean.format == .jpeg else {
        throw unavailable("the program returned no JPEG")
      }
      return clean.bytes
    } catch let error as SubprocessError {
      try Task.checkCancellation()
      if error.code == .outputLimitExceeded { throw AppError.notAPicture }
      throw unavailable("\(error)")
    }
  }

  /// - Throws: ``AppError/picturesUnavailable`` for a failure of this machine, ``AppError/notAPicture`` for a crash and
  ///   beyond a limit.
  private func hasDecoded(_ status: TerminationStatus, _ messages: String) throws -> Bool {
    switch status {
    case .exited(0): return true
    // The shell's statuses for a program that is missing or cannot start.
    case .exited(126), .exited(127): throw unavailable(String(messages.prefix(500)))
    case .signaled(SIGKILL): throw unavailable("killed: the machine may have no memory left")
    case .exited: return false
    case .signaled(let number):
      logger.warning("a picture crashed its decoder", metadata: ["signal": "\(number)"])
      throw AppError.notAPicture
    }
  }

  private func unavailable(_ reason: String) -> AppError {
    logger.error("pictures cannot be resized", metadata: ["error": "\(reason)"])
    return .picturesUnavailable
  }
}

extension AppError {
  static let picturesUnavailable = AppError(
    .unavailable, "pictures-unavailable", "Pictures cannot be stored at the moment. Nothing was changed. Try again.",
    retryAfter: 60)
}
