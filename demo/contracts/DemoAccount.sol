// SPDX-License-Identifier: MIT
pragma solidity ^0.8.24;

/// What a wallet that makes batches delegates to (EIP-7702): it carries out several calls of its own as one, all or none.
contract DemoAccount {
    struct Call {
        address target;
        uint256 value;
        bytes data;
    }

    function execute(Call[] calldata calls) external payable {
        require(msg.sender == address(this), "own calls alone");
        for (uint256 i = 0; i < calls.length; i++) {
            (bool ok, bytes memory answer) = calls[i].target.call{value: calls[i].value}(calls[i].data);
            if (!ok) assembly { revert(add(answer, 32), mload(answer)) }
        }
    }

    receive() external payable {}
}
