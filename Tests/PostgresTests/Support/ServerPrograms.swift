import Foundation
import Postgres
import TestSupport
import Testing

/// The programs and the account of the other tests' cluster, for tests with a server of their own.
struct ServerPrograms: Sendable {
  private let programs: String
  private let user: Int
  private let group: Int
  /// A socket's path has at most 107 bytes.
  private static let maximumParentLength = 50

  init() async throws {
    let cluster = Server(url: try await TestCluster.administrationURL())
    programs = try await cluster.value("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
    let data: String = try await cluster.value("SELECT current_setting('data_directory')")
    let attributes = try FileManager.default.attributesOfItem(atPath: data)
    user = attributes[.ownerAccountID] as? Int ?? 0
    group = attributes[.groupOwnerAccountID] as? Int ?? 0
  }

  /// Makes a folder next to the other tests' cluster, where `Scripts/test` looks for servers to stop if the tests are
  /// killed. If the path would be too long for a socket, the folder is in /tmp.
  func makeFolder(_ name: String) throws -> String {
    let cluster = ProcessInfo.processInfo.environment["MUSTER_TEST_CLUSTER"]
    let beside = cluster.map { URL(filePath: $0).deletingLastPathComponent().path }
    let parent = beside.flatMap { $0.utf8.count < Self.maximumParentLength ? $0 : nil } ?? "/tmp"
    let folder = "\(parent)/\(name)-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    own(folder)
    return folder
  }

  /// Gives a folder to PostgreSQL's account.
  func own(_ folder: String) {
    chown(folder, uid_t(user), gid_t(group))
  }

  /// Starts a program of PostgreSQL, or another one by its path, with PostgreSQL's account.
  func start(_ name: String, _ arguments: [String], in folder: String = "/") async throws -> Program {
    let path = name.hasPrefix("/") ? name : "\(programs)/\(name)"
    // PostgreSQL does not run as root.
    if user == Int(geteuid()) { return try await Program(path, arguments, in: folder) }
    let account = ["--reuid", String(user), "--regid", String(group), "--clear-groups"]
    return try await Program("/usr/bin/setpriv", account + [path] + arguments, in: folder)
  }

  /// Runs a program, which must succeed.
  func run(_ name: String, _ arguments: [String], in folder: String = "/") async throws {
    let program = try await start(name, arguments, in: folder)
    let status = try await program.exitStatus()
    guard status == 0 else { throw Unexpected("\(name): \(program.standardError)") }
  }
}
