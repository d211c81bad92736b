import Foundation
import Postgres
import TestSupport
import Testing

@testable import App

/// The plans of the statements that the service really sends, as PostgreSQL ran them. The extension `auto_explain`
/// writes them to the server's log.
struct PlanLog {
  private let path: String

  init() async throws {
    path = try await TestCluster.log()
  }

  /// Has all sessions of a database that begin later log their plans. Only one test at a time may do so.
  static func begin(in databaseURL: String) async throws {
    let settings = [
      "session_preload_libraries": "auto_explain", "auto_explain.log_min_duration": "0",
      "auto_explain.log_analyze": "on", "auto_explain.log_buffers": "on", "auto_explain.log_timing": "off",
    ]
    try await ScriptConnection.run(databaseURL) { connection in
      // Otherwise the session does not know the settings' names.
      try connection.script("LOAD 'auto_explain'")
      for (name, value) in settings {
        try connection.script(
          """
          DO $$ BEGIN
            EXECUTE format('ALTER DATABASE %I SET \(name) = ''\(value)''', current_database());
          END $$
          """)
      }
    }
  }

  /// The plans of the statements that run while `body` runs, each with its statement. Plans are logged before a client
  /// gets the last result.
  func plans(during body: () async throws -> Void) async throws -> [String] {
    let file = try #require(FileHandle(forReadingAtPath: path))
    defer { try? file.close() }
    try file.seekToEnd()
    try await body()
    let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
    var (plans, isPlan): ([String], Bool) = ([], false)
    for line in text.split(separator: "\n") {
      // Messages continue in lines that begin with a tab.
      if !line.hasPrefix("\t") {
        isPlan = line.hasSuffix("  plan:") && line.contains("duration: ")
        if isPlan { plans.append("") }
      } else if isPlan {
        plans[plans.count - 1] += line.dropFirst() + "\n"
      }
    }
    return plans
  }
}

extension PlanLog {
  /// The rows that scans read, whether a filter then drops them or not, and the buffers that a statement touches.
  struct Cost: CustomStringConvertible {
    var rows = 0
    var buffers = 0

    /// Averages have decimals since PostgreSQL 18.
    private static var node: Regex<(Substring, Substring, Substring)> {
      /actual (?:time=\S+ )?rows=([0-9.]+) loops=(\d+)/
    }

    var description: String { "\(rows) rows, \(buffers) buffers" }

    /// - Parameter plans: as ``PlanLog/plans(during:)`` returns them.
    init(of plans: [String]) {
      for plan in plans {
        // The first line about buffers is that of the whole statement.
        if let total = plan.firstMatch(of: /Buffers: shared([a-z0-9= ]+)/) {
          for part in total.1.matches(of: /(hit|read)=(\d+)/) { buffers += Int(part.2) ?? 0 }
        }
        #expect(plan.contains(Self.node), "a plan in another format: \(plan)")
        var loops = 0
        for line in plan.split(separator: "\n") {
          if let node = line.firstMatch(of: Self.node) {
            loops = 0
            // A scan of a bitmap's index finds the rows that its table's scan reads.
            guard line.contains(/Scan (Backward )?using|Seq Scan on|Bitmap Heap Scan on/) else { continue }
            loops = Int(node.2) ?? 0
            rows += Int(((Double(node.1) ?? 0) * Double(loops)).rounded())
          } else if let dropped = line.firstMatch(of: /Rows Removed by (Filter|Index Recheck): (\d+)/) {
            rows += (Int(dropped.2) ?? 0) * loops
          }
        }
      }
    }
  }
}
