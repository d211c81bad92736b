import Foundation
import Postgres
import Synchronization

// postgres-benchmark URL [SECONDS] [CALLERS] [CONNECTIONS]: measures how many single statements per second shared
// connections can send. Benchmarks/README.md has the same benchmark for pgbench.
let arguments = CommandLine.arguments.dropFirst()
guard let url = arguments.first else {
  print("usage: postgres-benchmark URL [SECONDS] [CALLERS] [CONNECTIONS]")
  exit(64)
}
func number(_ place: Int, _ fallback: Int) -> Int {
  arguments.count > place ? Int(arguments[arguments.startIndex + place]) ?? fallback : fallback
}
let (seconds, callers, connections) = (number(1, 8), number(2, 64), number(3, 2))

var configuration = Database.Configuration(url: url)
configuration.sharedConnections = connections
let database = try Database(configuration)
let ids: [UUID] = try await database.rows("SELECT id FROM users ORDER BY id LIMIT 2000").map { try $0[0] }
let end = ContinuousClock.now + .seconds(seconds)
let total = Atomic(0)
try await withThrowingTaskGroup(of: Void.self) { group in
  for caller in 0..<callers {
    group.addTask {
      var (index, count) = (caller * 31, 0)
      while ContinuousClock.now < end {
        index = (index + 1) % ids.count
        let rows = try await database.rows("SELECT * FROM user_stamps WHERE user_id = \(ids[index])")
        precondition(rows.count == 1)
        count += 1
      }
      total.wrappingAdd(count, ordering: .relaxed)
    }
  }
  try await group.waitForAll()
}
print("client \(total.load(ordering: .relaxed) / seconds) statements/s, \(callers) callers, \(connections) connections")
database.close()
