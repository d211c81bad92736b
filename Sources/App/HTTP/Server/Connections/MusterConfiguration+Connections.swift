extension MusterConfiguration {
  /// - Throws: ``Problem`` if clients could use up the files that the process needs itself.
  public func refuseMoreConnectionsThanFiles() throws(Problem) {
    guard let maximumConnections else { return }
    let files = FileLimit.current
    let most = ConnectionGate.limit(files: files, pool: poolSize)
    guard maximumConnections > most else { return }
    let name = Variable.table.maximumConnections.name
    throw Problem(
      "\(name) is \(maximumConnections), but a limit of \(files) open files leaves room for "
        + "\(most) connections: lower it, or raise the limit (ulimit -n)")
  }
}
