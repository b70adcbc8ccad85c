"""A real API server with nothing behind it but etcd: what is loaded stays as it is."""

from typing import Self

from tests.cluster.control_plane import ControlPlane


class ApiServer(ControlPlane):
    """etcd and kube-apiserver alone: nothing schedules, runs or collects pods."""

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
        """Of the kube-apiserver."""
        process = self.components["kube-apiserver"].process
        assert process
        return process.pid
