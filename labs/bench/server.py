"""A real API server with only etcd behind it, so that the load does not change."""

from typing import Self

from tests.cluster.control_plane import ControlPlane


class ApiServer(ControlPlane):
    """Runs only etcd and kube-apiserver: pods are not scheduled, run or garbage-collected."""

    async def __aenter__(self) -> Self:
        try:
            await self.start("etcd")
            await self.start("kube-apiserver")
        except BaseException:
            self.kill_all()
            raise
        return self

    @property
    def pid(self) -> int:
        """The process ID of kube-apiserver."""
        process = self.components["kube-apiserver"].process
        assert process
        return process.pid
